// The episode player: one position in time, everything else is drawn from it.

const PAD = 8; // half of the slider's thumb: the timeline begins and ends where its middle does

/** Turn an episode's columns back into states, and its queries into objects. */
function unpack(task, packed) {
  const states = packed.rows.map((row) => Object.fromEntries(packed.fields.map((name, n) => [name, row[n]])));
  const queries = packed.queries.map(([time, steps, wait, label, work]) => ({ time, steps, wait: Boolean(wait), label, work }));
  return { ...packed, task, states, queries, length: states.length - 1 };
}

/** The query that is being carried out at a time, and how many there were until then. */
function decisionAt(episode, time) {
  let asked = episode.queries.length;
  while (asked > 1 && episode.queries[asked - 1].time > time) asked -= 1;
  const query = episode.queries[asked - 1];
  return { query, asked, done: time - query.time, over: time >= episode.length };
}

/** Paths of an episode's actions, waits, filled waits and queries, `scale` pixels a step. */
function bars(episode, scale, left, top, height) {
  const parts = { act: [], stay: [], wait: [], work: [], tick: [] };
  const gap = Math.min(1, scale * 0.18);
  for (const q of episode.queries) {
    const x = left + q.time * scale;
    const kind = q.work ? "work" : !q.wait ? "act" : q.steps > 1 ? "wait" : "stay";
    const inset = q.steps > 1 ? 0 : height * 0.16;
    parts[kind].push(`M${x.toFixed(2)} ${top + inset}h${Math.max(q.steps * scale - gap, 0.4).toFixed(2)}v${height - 2 * inset}h-${Math.max(q.steps * scale - gap, 0.4).toFixed(2)}z`);
    parts.tick.push(`M${(x + 0.5).toFixed(2)} ${top - 3}v-6`);
  }
  return parts;
}

function barsInto(svg, parts, ticks) {
  for (const kind of ["act", "stay", "wait", "work"]) svg.append(draw("path", { d: parts[kind].join(""), class: `c-${kind}` }));
  if (ticks) svg.append(draw("path", { d: parts.tick.join(""), class: "c-tick" }));
}

function niceStep(length, wanted) {
  return [1, 2, 5, 10, 20, 25, 50, 100, 200, 250, 500].find((step) => length / step <= wanted) || 1000;
}

function startPlayer(data) {
  const $ = (id) => document.getElementById(`p-${id}`);
  const tasks = Object.keys(data.tasks);
  if (!tasks.length) return;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const now = { task: null, episode: null, scene: null, time: 0, playing: false, clock: 0, last: 0 };

  function chooseTask(name) {
    pause();
    now.task = name;
    const task = data.tasks[name];
    now.scene = SCENES[task.scene.kind](task.scene);
    const { width, height } = now.scene.svg.viewBox.baseVal;
    $("stage").style.aspectRatio = `${width} / ${height}`;
    $("picture").replaceChildren(now.scene.svg);
    $("badge").classList.toggle("middle", task.scene.kind === "pong");
    now.episodes = task.episodes.map((packed) => unpack(name, packed));
    listPolicies();
    chooseEpisode(0);
  }

  function chooseEpisode(n) {
    pause();
    now.episode = now.episodes[n];
    $("scrub").max = now.episode.length;
    $("steps").textContent = now.episode.length;
    $("queries").textContent = now.episode.queries.length;
    $("stage").setAttribute("aria-label", `${data.tasks[now.task].title}, ${now.episode.title}: press space to play`);
    document.getElementById("player").classList.toggle("has-work", now.episode.queries.some((q) => q.work));
    drawTimeline();
    seek(0);
  }

  function listPolicies() {
    const longest = Math.max(...now.episodes.map((e) => e.length));
    $("policies").replaceChildren(...now.episodes.map((episode, n) => {
      const label = document.createElement("label");
      label.className = "choice";
      const input = Object.assign(document.createElement("input"), { type: "radio", name: "policy", value: episode.name, checked: n === 0 });
      input.addEventListener("change", () => chooseEpisode(n));
      const row = Object.assign(document.createElement("span"), { className: "row" });
      const name = Object.assign(document.createElement("span"), { textContent: episode.title, title: episode.source });
      const svg = draw("svg", { viewBox: `0 0 ${longest} 14`, preserveAspectRatio: "none", "aria-hidden": "true" });
      barsInto(svg, bars(episode, 1, 0, 0, 14), false);
      const counts = Object.assign(document.createElement("span"), { className: "n", textContent: `${episode.length} / ${episode.queries.length}` });
      const spoken = Object.assign(document.createElement("span"), { className: "sr", textContent: `${episode.length} steps, ${episode.queries.length} queries` });
      counts.setAttribute("aria-hidden", "true");
      row.append(name, svg, counts, spoken);
      label.append(input, row);
      return label;
    }));
  }

  function drawTimeline() {
    const svg = $("timeline");
    const episode = now.episode;
    const width = svg.clientWidth || 600;
    const scale = (width - 2 * PAD) / episode.length;
    const [top, height] = [16, 34];
    svg.replaceChildren();
    const step = niceStep(episode.length, width / 70);
    for (let t = 0; t <= episode.length; t += step) {
      const x = PAD + t * scale;
      svg.append(draw("path", { d: `M${x} ${top}V${top + height + 5}`, class: "gridline" }), draw("text", { x, y: 70, "text-anchor": "middle" }, String(t)));
    }
    barsInto(svg, bars(episode, scale, PAD, top, height), true);
    const veil = box(0, top - 10, 0, height + 12, "var(--card)");
    veil.style.opacity = 0.4;
    const cursor = draw("g", {}, draw("path", { d: `M0 4V${top + height + 6}`, class: "cursor" }), draw("path", { d: "M-5 0h10v3l-5 5 -5 -5z", class: "cursor-head" }));
    svg.append(veil);
    for (const q of episode.queries.filter((q) => q.wait && q.steps > 1)) {
      const room = q.steps * scale;
      const text = [q.work ? `${q.label}: ${q.work}` : "", q.label, String(q.steps)].find((t) => t && t.length * 6.6 + 6 < room);
      if (text) svg.append(draw("text", { x: PAD + (q.time + q.steps / 2) * scale, y: top + height / 2 + 4, "text-anchor": "middle", class: "on-wait" }, text));
    }
    svg.append(cursor);
    now.moveCursor = () => {
      const x = PAD + now.time * scale;
      veil.setAttribute("x", x);
      veil.setAttribute("width", Math.max(width - x, 0));
      cursor.setAttribute("transform", `translate(${x} 0)`);
    };
    now.moveCursor();
  }

  function seek(time, smooth = false) {
    const { episode, scene } = now;
    now.time = Math.min(Math.max(Math.round(time), 0), episode.length);
    const { query, asked, done, over } = decisionAt(episode, now.time);
    const waiting = !over && query.wait;
    $("picture").classList.toggle("smooth", smooth && !calm.matches);
    $("picture").style.setProperty("--step", `${(900 / rate()).toFixed(0)}ms`);
    scene.update(episode.states[now.time], { waiting: waiting && !query.work, steps: query.steps, done, time: now.time, states: episode.states });
    $("stage").classList.toggle("waiting", waiting && query.steps > 1 && !query.work);
    $("step").textContent = now.time;
    $("query").textContent = asked;
    $("badge").textContent = over ? "end" : query.steps > 1 ? `${query.work || query.label} · ${done + 1} of ${query.steps}` : query.label;
    $("scrub").value = now.time;
    $("scrub").setAttribute("aria-valuetext", counts(asked));
    list([...decisions(over, query, asked, done), ...scene.facts(episode.states[now.time])]);
    tell(over, query, asked);
    now.moveCursor();
  }

  const counts = (asked) => `step ${now.time} of ${now.episode.length} · query ${asked} of ${now.episode.queries.length}`;

  function decisions(over, query, asked, done) {
    if (over) return [["Decision", "none: the episode is over"]];
    const next = now.episode.queries[asked];
    const label = query.work ? `${query.label}, filled with ${query.work}` : query.label;
    return [["Decision", query.steps > 1 ? `${label}, step ${done + 1} of ${query.steps}` : label], ["Then", next ? next.label : "the end"]];
  }

  function list(facts) {
    $("facts").replaceChildren(...facts.flatMap(([name, value]) => [
      Object.assign(document.createElement("dt"), { textContent: name }),
      Object.assign(document.createElement("dd"), { textContent: value }),
    ]));
  }

  /** Say where things are; while playing only at the end, so that nobody is read thirty lines. */
  function tell(over, query, asked) {
    const { episode } = now;
    const saved = episode.length - episode.queries.length;
    const share = Math.round((100 * saved) / episode.length);
    const end = `${episode.terminated ? "Finished" : "Cut at the horizon"} after ${episode.length} steps with ${episode.queries.length} queries`;
    const rest = saved ? `; ${saved} steps (${share} %) passed without a query.` : "; it was queried at every step.";
    $("outcome").replaceChildren();
    if (over) $("outcome").append(Object.assign(document.createElement("b"), { textContent: end }), rest);
    if (over || !now.playing) $("live").textContent = over ? end + rest : `${counts(asked)}: ${query.label}`;
  }

  const rate = () => now.scene.rate * Number($("speed").value);

  function frame(moment) {
    if (!now.playing) return;
    now.clock += Math.min(moment - now.last, 250) * (rate() / 1000);
    now.last = moment;
    const steps = Math.floor(now.clock);
    if (steps) {
      now.clock -= steps;
      if (now.time + steps >= now.episode.length) pause();
      seek(now.time + steps, steps === 1);
    }
    if (now.playing) requestAnimationFrame(frame);
  }

  function play() {
    if (now.time >= now.episode.length) seek(0);
    Object.assign(now, { playing: true, last: performance.now(), clock: 0.6 });
    mark();
    requestAnimationFrame(frame);
  }

  function pause() {
    now.playing = false;
    mark();
  }

  function mark() {
    $("play").classList.toggle("playing", now.playing);
    $("play").setAttribute("aria-label", now.playing ? "Pause" : "Play");
  }

  const toggle = () => (now.playing ? pause() : play());
  const go = (time, smooth = false) => { pause(); seek(time, smooth); };
  $("play").addEventListener("click", toggle);
  $("first").addEventListener("click", () => go(0));
  $("last").addEventListener("click", () => go(now.episode.length));
  $("back").addEventListener("click", () => go(now.time - 1, true));
  $("next").addEventListener("click", () => go(now.time + 1, true));
  $("scrub").addEventListener("input", () => go(Number($("scrub").value)));
  $("stage").addEventListener("click", toggle);

  const keys = { ArrowLeft: () => go(now.time - 1, true), ArrowRight: () => go(now.time + 1, true), Home: () => go(0), End: () => go(now.episode.length), " ": toggle };
  document.getElementById("player").addEventListener("keydown", (event) => {
    const at = event.target;
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    if (at.matches("select, input[type=radio]") || (event.key === " " && at.matches("button"))) return;
    event.preventDefault();
    keys[event.key]();
  });

  const timeline = $("timeline");
  const pointed = (event) => {
    const edge = timeline.getBoundingClientRect();
    go(((event.clientX - edge.left - PAD) / (edge.width - 2 * PAD)) * now.episode.length);
  };
  timeline.addEventListener("pointerdown", (event) => { timeline.setPointerCapture(event.pointerId); pointed(event); });
  timeline.addEventListener("pointermove", (event) => { if (event.buttons) pointed(event); });
  new ResizeObserver(() => now.episode && drawTimeline()).observe(timeline);

  pills($("tasks"), "task", tasks.map((name) => [name, data.tasks[name].title]), chooseTask);
  chooseTask(tasks[0]);
}

/** A row of radio buttons that look like pills; the first is chosen. */
function pills(place, name, choices, choose) {
  place.replaceChildren(...choices.map(([value, text], n) => {
    const label = document.createElement("label");
    const input = Object.assign(document.createElement("input"), { type: "radio", name, value, checked: n === 0 });
    input.addEventListener("change", () => choose(value));
    label.append(input, Object.assign(document.createElement("span"), { textContent: text }));
    return label;
  }));
}
