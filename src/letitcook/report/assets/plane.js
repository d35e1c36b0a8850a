// The plane of length and queries: ours, the paper's, the exact optimum.

/** Round steps that cover a range, about `wanted` of them. */
function ticksOf(low, high, wanted) {
  const raw = (high - low) / wanted;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((n) => n * size).find((n) => n >= raw);
  const first = Math.ceil(low / step) * step;
  return [...Array(Math.floor((high - first) / step + 1e-9) + 1).keys()].map((n) => Number((first + n * step).toFixed(6)));
}

/** Round numbers for an axis of logarithms. */
const logTicks = (low, high) => [1, 2, 3, 5, 10, 20, 30, 40, 50, 70, 100, 150, 200, 300, 500, 700, 1000].filter((v) => v >= low && v <= high);

/** A range with some room around its values. */
function reach(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const room = Math.max((high - low) * 0.06, 2);
  return [Math.max(low - Math.min(room, low * 0.15), 0.5), high + room];
}

const shortNumber = (value) => (Math.abs(value - Math.round(value)) < 0.005 ? String(Math.round(value)) : value.toFixed(Math.abs(value) < 0.1 ? 2 : 1));
const spread = (mean, sd) => shortNumber(mean) + (sd > 0.005 ? ` ± ${shortNumber(sd)}` : "");

/** Marks of the same kind at the same place are one mark that tells of all its rows. */
function gathered(rows) {
  const marks = new Map();
  const add = (kind, row, x, y, text) => {
    const key = `${kind} ${x.toFixed(1)} ${y.toFixed(1)}`;
    if (!marks.has(key)) marks.set(key, { kind, x, y, rows: [] });
    marks.get(key).rows.push({ row, text });
  };
  for (const row of rows) {
    if (row.exact && row.exact[1] !== null) add("exact", row, row.exact[1], row.exact[0], `${shortNumber(row.exact[0])} steps, ${shortNumber(row.exact[1])} queries`);
    if (row.paper) add("paper", row, row.paper[2], row.paper[0], `${spread(row.paper[0], row.paper[1])} steps, ${spread(row.paper[2], row.paper[3])} queries`);
    add(row.method, row, row.ours[2], row.ours[0], `${spread(row.ours[0], row.ours[1])} steps, ${spread(row.ours[2], row.ours[3])} queries`);
  }
  return [...marks.values()];
}

const MARKS = {
  exact: () => draw("path", { d: "M-9 0H9M0 -9V9", class: "m-exact" }),
  paper: () => draw("path", { d: "M0 -7.500L7.500 0 0 7.500 -7.500 0z", class: "m-paper" }),
  lexicographic: () => draw("circle", { r: 6.5, class: "m-lexicographic", "stroke-width": 1.5 }),
  scalar: () => draw("circle", { r: 4.5, class: "m-scalar", "stroke-width": 1 }),
  vanilla: () => draw("rect", { x: -5, y: -5, width: 10, height: 10, class: "m-vanilla", "stroke-width": 1 }),
};
const MARK_NAMES = { exact: "exact optimum", paper: "paper", lexicographic: "ours, lexicographic", scalar: "ours, scalarised", vanilla: "ours, vanilla" };

function startPlane(data) {
  const place = document.getElementById("chart");
  const tip = document.getElementById("tip");
  const tasks = Object.keys(data.tasks).filter((name) => data.plane.some((row) => row.task === name));
  if (!tasks.length) return;
  const modes = [["scratch", "from scratch"], ["wrap", "around the base policy"]];
  const chosen = { task: tasks[0], mode: "scratch" };

  function paint() {
    const rows = data.plane.filter((row) => row.task === chosen.task && row.mode === chosen.mode);
    const svg = place.querySelector("svg");
    svg.replaceChildren();
    tip.hidden = true;
    if (!rows.length) return svg.append(draw("text", { x: 20, y: 30 }, "No such rows in this sweep."));
    const [width, height] = [svg.clientWidth || 700, svg.clientHeight || 420];
    const edge = { left: 46, right: 14, top: 28, bottom: 42 };
    const marks = gathered(rows);
    const front = data.fronts[`${chosen.task}/${chosen.mode}`] || [];
    const xs = reach([...marks.map((mark) => mark.x), ...front.map((point) => point[1])]);
    const ys = reach([...marks.map((mark) => mark.y), ...front.map((point) => point[0])]);
    // Rows that wait for ever lie far out: such lengths are spread by their logarithm.
    const bend = ys[1] / ys[0] > 2.5 ? Math.log : (v) => v;
    const X = (v) => edge.left + ((v - xs[0]) / (xs[1] - xs[0])) * (width - edge.left - edge.right);
    const Y = (v) => height - edge.bottom - ((bend(v) - bend(ys[0])) / (bend(ys[1]) - bend(ys[0]))) * (height - edge.top - edge.bottom);
    const clip = (v, [low, high]) => Math.min(Math.max(v, low), high);
    const path = (d, name) => svg.append(draw("path", { d, class: name }));
    for (const v of ticksOf(...xs, width / 90)) {
      path(`M${X(v)} ${edge.top}V${height - edge.bottom}`, "gridline");
      svg.append(draw("text", { x: X(v), y: height - edge.bottom + 18, "text-anchor": "middle" }, String(v)));
    }
    for (const v of bend === Math.log ? logTicks(...ys) : ticksOf(...ys, height / 60)) {
      path(`M${edge.left} ${Y(v)}H${width - edge.right}`, "gridline");
      svg.append(draw("text", { x: edge.left - 8, y: Y(v) + 4, "text-anchor": "end" }, String(v)));
    }
    const longer = data.tasks[chosen.task].longer;
    svg.append(draw("text", { x: width - edge.right, y: height - 6, "text-anchor": "end" }, "queries (fewer is better) →"), draw("text", { x: 0, y: 10 }, `↑ length in steps (${longer ? "longer" : "shorter"} is better)`));
    const [from, to] = [Math.max(xs[0], ys[0]), Math.min(xs[1], ys[1])];
    const along = [...Array(41).keys()].map((n) => from + ((to - from) * n) / 40);
    if (from < to) path(`M${along.map((v) => `${X(v).toFixed(1)} ${Y(v).toFixed(1)}`).join("L")}`, "diagonal");
    // Between two of its points the front is a corner: with a query fewer an episode is as long as the next point.
    if (front.length) path(front.map(([length, queries], n) => (n ? `V${Y(length)}H${X(queries)}` : `M${X(queries)} ${Y(length)}`)).join(""), "front");
    for (const row of rows) {
      const [length, lengthSd, queries, queriesSd] = row.ours;
      if (row.paper) path(`M${X(queries)} ${Y(length)}L${X(row.paper[2])} ${Y(row.paper[0])}`, "link");
      if (queriesSd > 0.005) path(`M${X(clip(queries - queriesSd, xs))} ${Y(length)}H${X(clip(queries + queriesSd, xs))}`, "spread");
      if (lengthSd > 0.005) path(`M${X(queries)} ${Y(clip(length - lengthSd, ys))}V${Y(clip(length + lengthSd, ys))}`, "spread");
    }
    const order = ["exact", "paper", "vanilla", "scalar", "lexicographic"];
    for (const mark of marks.sort((a, b) => order.indexOf(a.kind) - order.indexOf(b.kind))) {
      const all = marks.filter((m) => Math.hypot(X(m.x) - X(mark.x), Y(m.y) - Y(mark.y)) < 5);
      const node = draw("g", { class: "mark", tabindex: 0, role: "img", "aria-label": all.map(spoken).join("; "), transform: `translate(${X(mark.x)} ${Y(mark.y)})` }, draw("circle", { r: 14, class: "halo" }), MARKS[mark.kind]());
      for (const event of ["pointerenter", "focus"]) node.addEventListener(event, () => explain(all, X(mark.x), Y(mark.y)));
      for (const event of ["pointerleave", "blur"]) node.addEventListener(event, () => { tip.hidden = true; });
      svg.append(node);
    }
    return undefined;
  }

  const spoken = (mark) => `${MARK_NAMES[mark.kind]}: ${mark.rows.map(({ row, text }) => `${row.id}, ${text}`).join("; ")}`;

  function explain(marks, x, y) {
    const lines = new Map();
    for (const mark of [...marks].reverse()) for (const { row, text } of mark.rows) {
      const under = lines.get(MARK_NAMES[mark.kind]) || new Map();
      lines.set(MARK_NAMES[mark.kind], under.set(text, [...(under.get(text) || []), row.lambda === null ? row.label : `λ ${row.lambda}`]));
    }
    const line = (text, name = "span") => { const p = document.createElement("p"); p.append(Object.assign(document.createElement(name), { textContent: text })); return p; };
    tip.replaceChildren(...[...lines].flatMap(([title, under]) => [line(title, "b"), ...[...under].map(([text, labels]) => line(`${text} (${labels.join(", ")})`))]));
    tip.hidden = false;
    const room = place.getBoundingClientRect();
    tip.style.left = `${Math.max(Math.min(x + 14, room.width - tip.offsetWidth), 0)}px`;
    tip.style.top = `${y + 16 + tip.offsetHeight > room.height ? Math.max(y - tip.offsetHeight - 14, 0) : y + 16}px`;
  }

  pills(document.getElementById("plane-tasks"), "plane-task", tasks.map((name) => [name, data.tasks[name].title]), (task) => { chosen.task = task; paint(); });
  pills(document.getElementById("plane-modes"), "plane-mode", modes, (mode) => { chosen.mode = mode; paint(); });
  const key = document.getElementById("plane-key");
  for (const [kind, text] of Object.entries(MARK_NAMES)) {
    const item = document.createElement("li");
    const svg = draw("svg", { viewBox: "-10 -10 20 20", "aria-hidden": "true" }, MARKS[kind]());
    item.append(svg, text);
    key.append(item);
  }
  new ResizeObserver(paint).observe(place);
}
