// Drawings of the tasks. Each builds its picture once and returns a function that shows the state at a time.

const NS = "http://www.w3.org/2000/svg";

/** Make an SVG element; `fill` and `stroke` are CSS values, so that they follow the theme. */
function draw(name, attributes = {}, ...children) {
  const node = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "fill" || key === "stroke") node.style[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}
const box = (x, y, w, h, fill, rx = 0) => draw("rect", { x, y, width: w, height: h, fill, rx });
const disc = (cx, cy, r, fill) => draw("circle", { cx, cy, r, fill });
const oval = (cx, cy, rx, ry, fill) => draw("ellipse", { cx, cy, rx, ry, fill });
const shape = (d, fill) => draw("path", { d, fill });
const line = (d, width, stroke) => draw("path", { d, stroke, fill: "none", "stroke-width": width, "stroke-linecap": "round", "stroke-linejoin": "round" });
const group = (attributes, ...children) => draw("g", attributes, ...children);
const words = (x, y, size, fill, text = "") => draw("text", { x, y, "font-size": size, fill }, text);
const moved = (node, x, y, turn = 0, size = 1) => { node.style.transform = `translate(${x}px, ${y}px) rotate(${turn}deg) scale(${size})`; };
const decimal = (value, places) => value.toFixed(places).replace("-", "−");
const show = (node, yes) => { node.style.display = yes ? "" : "none"; };

function canvas(width, height, left = 0, top = 0) {
  return draw("svg", { viewBox: `${left} ${top} ${width} ${height}`, preserveAspectRatio: "xMidYMid slice", "aria-hidden": "true" });
}

/** A ring that fills clockwise from the top: `set(part)` with 0 to 1. */
function ring(x, y, r, width, stroke) {
  const node = draw("circle", { cx: x, cy: y, r, fill: "none", stroke, "stroke-width": width, pathLength: 1, "stroke-dasharray": "1 1", transform: `rotate(-90 ${x} ${y})`, class: "fills" });
  node.set = (part) => { node.style.strokeDashoffset = 1 - part; };
  return node;
}

/** Turns the short way from one angle to the next. */
function turning() {
  let angle = null;
  return (target) => {
    angle = angle === null ? target : angle + ((((target - angle) % 360) + 540) % 360) - 180;
    return angle;
  };
}

/** Somebody seen from above, looking up the page; the eyes are closed while nothing is sensed. */
function person(look, size = 1) {
  const eyes = group({}, disc(-7, -20, 2.9, "#2c2a28"), disc(7, -20, 2.9, "#2c2a28"));
  const asleep = group({}, line("M-11 -20q4 3.4 8 0M3 -20q4 3.4 8 0", 2.4, "#2c2a28"));
  const arms = [-1, 1].map((side) => group({}, line(`M${27 * side} 0L${17 * side} -27`, 13, look.sleeve), disc(15 * side, -31, 7.5, "var(--skin)")));
  const head = group({}, disc(0, -7, 21.5, look.collar), disc(0, -6, 19, "var(--skin)"), eyes, asleep, look.hat());
  const body = group({ class: "moves" }, ...arms, oval(0, 2, 35, 22, look.body), ...look.extra(), head);
  const shade = group({ class: "moves" }, oval(3, 7, 34, 28, "var(--fall)"));
  const clock = ring(0, 0, 46, 6, "var(--wait)");
  const halo = group({ class: "moves" }, draw("circle", { r: 46, fill: "none", stroke: "var(--fall)", "stroke-width": 6 }), clock);
  const angle = turning();
  return {
    nodes: [shade, halo, body],
    set(x, y, facing, now) {
      moved(shade, x, y, 0, size);
      moved(halo, x, y, 0, size);
      moved(body, x, y, angle(facing), size);
      const waits = now.waiting && now.steps > 1;
      show(halo, waits);
      show(eyes, !waits);
      show(asleep, waits);
      clock.set(waits ? 1 - now.done / now.steps : 0);
    },
  };
}
const COOK = {
  sleeve: "var(--sleeve)", body: "var(--jacket)", collar: "var(--scarf)", extra: () => [],
  hat: () => group({}, ...[[-9, 14], [9, 14], [-10, -2], [10, -2], [0, 6]].map(([x, y]) => disc(x, y, 12.5, "var(--hat-shade)")),
    ...[[-8, 14], [8, 14], [-9, 0], [9, 0], [0, 6]].map(([x, y]) => disc(x, y, 11, "var(--hat)"))),
};
const BARISTA = {
  sleeve: "#e9e4da", body: "#f4efe6", collar: "#d9d2c5", extra: () => [shape("M-17 -14h34l4 16a35 22 0 0 1 -42 0z", "var(--apron)"), line("M-15 -12L-20 14M15 -12L20 14", 4, "var(--apron-dark)")],
  hat: () => group({}, shape("M-19 -7a19.5 19.5 0 1 0 38 0q-6 -9 -19 -8t-19 8z", "var(--hair)"), line("M-8 -8q8 -4 17 1", 4, "var(--hair-light)")),
};

function onion(x, y, r) {
  return group({}, shape(`M${x - 0.35 * r} ${y - 0.7 * r}L${x} ${y - 1.65 * r}L${x + 0.35 * r} ${y - 0.7 * r}z`, "var(--shoot)"), disc(x, y, r, "var(--bulb)"), oval(x - 0.22 * r, y - 0.05 * r, 0.5 * r, 0.75 * r, "var(--bulb-light)"), oval(x + 0.1 * r, y + 0.05 * r, 0.44 * r, 0.72 * r, "var(--bulb)"));
}
const dish = (x, y, r) => group({}, disc(x, y + 0.1 * r, r, "var(--rim)"), disc(x, y, 0.95 * r, "var(--plate)"), disc(x, y, 0.62 * r, "#e3e8ec"));
const soup = (x, y, r) => group({}, dish(x, y, r), disc(x, y, 0.7 * r, "var(--broth-done)"), disc(x - 0.2 * r, y - 0.2 * r, 0.18 * r, "var(--bulb-light)"));

const STATIONS = {
  O: (x, y) => group({}, box(x - 38, y - 36, 76, 68, "var(--wood)", 6), box(x - 32, y - 30, 64, 56, "#5b3e27", 4), ...[[-16, -11], [15, -12], [0, 10], [-21, 14], [20, 13]].map(([dx, dy]) => onion(x + dx, y + dy, 13))),
  D: (x, y) => group({}, box(x - 41, y - 34, 82, 64, "var(--steel-dark)", 8), box(x - 37, y - 30, 74, 56, "var(--steel)", 6), ...[-18, 18].flatMap((dx) => [6, 0, -6].map((dy) => dish(x + dx, y + dy, 16.5)))),
  S: (x, y) => group({}, box(x - 40, y - 38, 90, 70, "var(--hatch)", 6), ...[-22, 2, 26].map((dx) => line(`M${x + dx - 6} ${y - 20}L${x + dx + 8} ${y - 3}L${x + dx - 6} ${y + 14}`, 6, "var(--hatch-light)"))),
  P: (x, y) => group({}, box(x - 46, y - 46, 92, 86, "var(--stove)", 8), ...[-36, 36].map((dx) => disc(x + dx, y + 32, 4.5, "var(--steel)"))),
};

function floorTile(x, y, tone) {
  return group({}, box(x, y, 100, 100, tone[0]), box(x, y, 50, 50, tone[1]), box(x + 50, y + 50, 50, 50, tone[1]));
}

function kitchen(scene) {
  const rows = scene.layout;
  const svg = canvas(rows[0].length * 100, rows.length * 100);
  const at = {};
  const things = [];
  rows.forEach((row, y) => [...row].forEach((cell, x) => {
    if (cell === " ") return svg.append(floorTile(x * 100, y * 100, ["var(--floor)", "var(--floor-2)"]));
    svg.append(box(x * 100, y * 100, 100, 100, "var(--wood)"), box(x * 100 + 2, y * 100 + 2, 96, 88, "var(--wood-edge)", 6), box(x * 100 + 5, y * 100 + 5, 90, 82, "var(--wood-top)", 5));
    at[cell] = [x * 100 + 50, y * 100 + 47];
    if (STATIONS[cell]) things.push(STATIONS[cell](...at[cell]));
  }));
  svg.append(...things);

  const [px, py] = at.P;
  const flame = draw("circle", { cx: px, cy: py, r: 44, fill: "#e0602a", class: "flame" });
  const inside = disc(px, py, 27, "#50565e");
  const onions = [[-11, 8], [11, 8], [0, -9]].map(([dx, dy]) => onion(px + dx, py + dy, 11));
  const back = draw("circle", { cx: px, cy: py, r: 37, fill: "none", stroke: "var(--stove)", "stroke-width": 9 });
  const clock = ring(px, py, 37, 9, "var(--ring)");
  const left = words(px, py + 1, 32, "#2c2a28");
  const steam = group({ class: "steam" }, ...[-13, 0, 13].map((dx) => line(`M${px + dx} ${py + 12}q5 -6 0 -12t0 -12`, 4.5, "#fffaf0")));
  svg.append(flame, ...[-36, 36].map((dx) => box(px + dx - 7, py - 6, 14, 12, "var(--steel-dark)", 4)), disc(px, py, 35, "var(--steel-dark)"), disc(px, py, 32, "var(--steel)"), inside, ...onions, back, clock, left, steam);

  const [sx, sy] = at.S;
  const served = [...Array(scene.soups).keys()].map((n) => soup(sx - 12 + 26 * n, sy - 3, scene.soups > 1 ? 22 : 30));
  const cook = person(COOK);
  const held = [null, onion(0, 0, 14), dish(0, 0, 19), soup(0, 0, 19)];
  const hands = group({ class: "moves" }, ...held.filter(Boolean));
  svg.append(...served, ...cook.nodes, hands);

  const STEPS = [[0, -1], [0, 1], [1, 0], [-1, 0]];
  const update = (s, now) => {
    const cooking = s.onions === 3 && s.left > 0;
    const done = s.onions === 3 && s.left === 0;
    inside.style.fill = done ? "var(--broth-done)" : cooking ? "var(--broth)" : "#50565e";
    onions.forEach((node, n) => show(node, s.onions < 3 && n < s.onions));
    show(flame, cooking);
    show(back, cooking || done);
    show(clock, cooking || done);
    clock.style.stroke = done ? "var(--ring-done)" : "var(--ring)";
    clock.set(scene.hidden && cooking ? 0 : 1 - s.left / scene.cook_time);
    left.textContent = cooking ? (scene.hidden ? "?" : s.left) : "";
    show(steam, done);
    served.forEach((node, n) => show(node, n < s.delivered));
    const [x, y] = [s.x * 100 + 50, s.y * 100 + 50];
    cook.set(x, y, [0, 180, 90, 270][s.facing], now);
    moved(hands, x + 40 * STEPS[s.facing][0], y + 40 * STEPS[s.facing][1]);
    held.forEach((node, n) => node && show(node, n === s.held));
  };
  const HELD = ["nothing", "an onion", "a dish", "the soup"];
  const facts = (s) => [
    ["Cook holds", HELD[s.held]],
    ["Pot", s.onions < 3 ? (s.onions ? `${s.onions} of 3 onions` : "empty") : s.left ? `cooking, ${scene.hidden ? "?" : s.left} left` : "done"],
    ["Served", `${s.delivered} of ${scene.soups}`],
  ];
  return { svg, update, facts, rate: 4 };
}

function coffeeMachine(x, y) {
  const at = (px, py, w, h, fill, rx = 0) => box(x + px, y + py, w, h, fill, rx);
  const screen = words(x + 50, y + 25, 32, "#888");
  const bar = at(16, 44, 68, 8, "#ff9b2f");
  const stream = line(`M${x + 50} ${y + 60}v10`, 5, "#7a4a25");
  const cup = group({}, draw("ellipse", { cx: x + 66, cy: y + 77, rx: 8, ry: 7, fill: "none", stroke: "#e8e8e8", "stroke-width": 4 }), at(36, 66, 28, 23, "#f5f5f5", 5));
  const coffee = at(40, 68, 20, 19, "#6b3e1f", 2);
  const node = group({}, at(8, 4, 84, 94, "#b8402f", 8), at(16, 10, 68, 30, "#161616", 4), screen, at(16, 44, 68, 8, "#5d1c15", 3), bar, at(20, 56, 60, 37, "#2b2b2b", 4), at(44, 56, 12, 6, "#9a9a9a"), stream, cup, coffee);
  const set = (s, scene) => {
    const brewing = s.brewed > 0;
    const [done, full] = brewing ? [s.brewed, scene.ready] : [s.heated, scene.hot];
    const colour = done === full ? "#46d160" : brewing ? "#ffd27a" : "#ff9b2f";
    const unknown = scene.hidden && done > 0 && done < full;
    screen.textContent = s.coffee ? "" : done === full ? "ok" : unknown ? "?" : done ? full - done : "off";
    screen.style.fill = done ? colour : "#8d8d8d";
    bar.style.fill = colour;
    bar.setAttribute("width", s.coffee || unknown ? 0 : (68 * done) / full);
    show(stream, brewing && done < full);
    const hot = s.heated === scene.hot && !s.coffee;
    show(cup, hot);
    show(coffee, hot && brewing);
    const level = unknown && brewing ? 9.5 : (19 * s.brewed) / scene.ready;
    coffee.setAttribute("height", level);
    coffee.setAttribute("y", y + 87 - level);
  };
  return { node, set };
}

function coffeeRoom(scene) {
  const rows = scene.layout;
  const svg = canvas(rows[0].length * 100, rows.length * 100);
  const at = {};
  rows.forEach((row, y) => [...row].forEach((cell, x) => {
    at[cell] = [x * 100, y * 100];
    if (cell === ".") return svg.append(floorTile(x * 100, y * 100, ["var(--room)", "var(--room-2)"]));
    return svg.append(box(x * 100, y * 100, 100, 100, "var(--wall)"), box(x * 100 + 3, y * 100 + 3, 94, 94, "var(--wall-top)", 5));
  }));
  const machine = coffeeMachine(...at.M);
  const [sx, sy] = at.S;
  const [cx, cy] = at.C;
  const sugar = group({}, ...[[18, 50], [52, 50], [35, 18]].map(([x, y]) => group({}, box(sx + x, sy + y, 30, 30, "#cfd8e2", 4), box(sx + x, sy + y, 25, 25, "#ffffff", 4))));
  const cream = group({}, draw("ellipse", { cx: cx + 72, cy: cy + 54, rx: 14, ry: 16, fill: "none", stroke: "#cfd8e2", "stroke-width": 6 }), shape(`M${cx + 25} ${cy + 20}h41l8 64h-54zM${cx + 25} ${cy + 20}l-11 -6 16 20z`, "#ffffff"), shape(`M${cx + 22.5} ${cy + 46}h47l2.2 18h-51z`, "#4c78a8"));
  const tick = ([x, y]) => group({}, disc(x + 78, y + 78, 20, "#2f9e4f"), line(`M${x + 69} ${y + 78}l7 7 12 -14`, 6, "#fff"));
  const ticks = { sugar: tick(at.S), cream: tick(at.C), coffee: tick(at.M) };
  const barista = person(BARISTA, 1.25);
  svg.append(machine.node, sugar, cream, ...Object.values(ticks), ...barista.nodes);
  const update = (s, now) => {
    machine.set(s, scene);
    sugar.style.opacity = s.sugar ? 0.35 : 1;
    cream.style.opacity = s.cream ? 0.35 : 1;
    for (const [name, node] of Object.entries(ticks)) show(node, s[name]);
    barista.set(s.x * 100 + 50, s.y * 100 + 50, [90, 180, 270, 0][s.direction], now);
  };
  const note = (s) => {
    if (s.coffee) return "empty";
    if (s.brewed) return s.brewed === scene.ready ? "coffee ready" : `brewing, ${scene.hidden ? "?" : scene.ready - s.brewed} left`;
    if (s.heated) return s.heated === scene.hot ? "hot" : `heating, ${scene.hidden ? "?" : scene.hot - s.heated} left`;
    return "off";
  };
  const facts = (s) => [
    ["Machine", note(s)],
    ["Collected", ["coffee", "sugar", "cream"].filter((name) => s[name]).join(", ") || "nothing"],
  ];
  return { svg, update, facts, rate: 4 };
}

function pongField(scene) {
  const u = 10;
  const svg = canvas((scene.width + 4) * u, (scene.height + 4) * u, -2 * u, -2 * u);
  svg.append(box(-400, -400, 1600, 1400, "var(--field)"), draw("rect", { x: -u, y: -u, width: (scene.width + 2) * u, height: (scene.height + 2) * u, rx: 6, fill: "none", stroke: "var(--field-line)", "stroke-width": 2 }));
  for (let y = 0; y < scene.height; y += 2) svg.append(box(scene.width * u * 0.5 - 1, (y + 0.5) * u, 2, u, "var(--field-line)"));
  const trail = [...Array(9).keys()].map((n) => { const d = disc(0, 0, 4.6 - n * 0.35, "#f2f2ee"); d.style.opacity = 0.34 - n * 0.036; return d; });
  const paddle = (colour) => group({ class: "moves" }, box(-4, -scene.half_paddle * u, 8, 2 * scene.half_paddle * u, colour, 3));
  const agent = paddle("#62c3ac");
  const glow = draw("rect", { x: -9, y: -scene.half_paddle * u - 5, width: 18, height: 2 * scene.half_paddle * u + 10, rx: 7, fill: "none", stroke: "#ffe08a", "stroke-width": 3 });
  agent.append(glow);
  const opponent = paddle("#e58a4c");
  const ball = group({ class: "moves" }, disc(0, 0, 5.4, "#ffffff"));
  svg.append(...trail, agent, opponent, ball);
  const tag = (x, text, colour) => { const t = words(x, scene.height * u + 2, 11, colour, text); t.setAttribute("class", "tag"); t.style.fontSize = "11px"; return t; };
  svg.append(tag(26, "agent", "#62c3ac"), tag(scene.width * u - 32, "opponent", "#e58a4c"));
  const update = (s, now) => {
    moved(agent, -6, s.agent * u);
    moved(opponent, scene.width * u + 6, s.opponent * u);
    moved(ball, s.x * u, s.y * u);
    show(glow, s.action !== null && scene.actions[s.action] === "hit");
    trail.forEach((node, n) => {
      const before = now.states[now.time - 1 - n];
      show(node, before && Math.abs(before.x - s.x) <= n + 1.5);
      if (before) moved(node, before.x * u, before.y * u);
    });
  };
  const facts = (s) => [
    ["Executed", s.action === null ? "–" : scene.actions[s.action]],
    ["Ball", `${decimal(s.x, 0)} of ${scene.width} across, ${s.y.toFixed(1)} down`],
    ["Sticky", "with probability ¼ the last action is done again"],
  ];
  return { svg, update, facts, rate: 20 };
}

function arrow() {
  return shape("M0 -4h26v-8l17 12 -17 12v-8h-26z", "var(--push)");
}

function cartPole(scene) {
  const svg = canvas(520, 350, -260, -290);
  svg.append(box(-900, -900, 1800, 1800, "var(--lab)"));
  svg.append(box(-240, 0, 480, 3, "var(--track)", 1.5));
  for (let x = -2; x <= 2; x += 1) svg.append(box(x * 100 - 0.75, 3, 1.5, 9, "var(--track)"), words(x * 100, 26, 13, "var(--track)", decimal(x, 0)));
  for (const x of [-240, 240]) svg.append(box(x - 2, -34, 4, 40, "var(--worse)", 2));
  const cone = [-12, 12].map((angle) => draw("path", { d: "M0 0V-185", fill: "none", stroke: "var(--worse)", "stroke-width": 2, "stroke-dasharray": "3 6", transform: `rotate(${angle})` }));
  const pole = group({ class: "moves" }, line("M0 0V-170", 11, "var(--pole)"), disc(0, -170, 7, "var(--pole)"));
  const push = arrow();
  const hub = group({}, ...cone, pole, disc(0, 0, 7, "var(--hub)"));
  hub.setAttribute("transform", "translate(0 -34)");
  const cart = group({ class: "moves" }, push, box(-38, -46, 76, 38, "var(--cart)", 7), ...[-22, 22].map((x) => group({}, disc(x, -8, 10, "var(--cart)"), disc(x, -8, 4.5, "var(--hub)"))), hub);
  svg.append(cart);
  const update = (s) => {
    moved(cart, s.x * 100, 0);
    moved(pole, 0, 0, (s.theta * 180) / Math.PI);
    const name = s.action === null ? "wait" : scene.actions[s.action];
    show(push, name !== "wait");
    push.setAttribute("transform", name === "left" ? "translate(-42 -27) scale(-1 1)" : "translate(42 -27)");
  };
  const facts = (s) => [
    ["Cart", `${decimal(s.x, 2)} of ±2.4`],
    ["Pole", `${decimal((s.theta * 180) / Math.PI, 1)}° of ±12°`],
    ["Push", s.action === null ? "–" : scene.actions[s.action] === "wait" ? "none" : scene.actions[s.action]],
  ];
  return { svg, update, facts, rate: 20 };
}

function mountain(scene) {
  const k = 300;
  const [x0, x1] = [scene.left_end, scene.right_end];
  const height = (x) => 0.45 * Math.sin(3 * x) + 0.55;
  const px = (x) => (x - x0) * k;
  const py = (x) => -height(x) * k;
  const width = (x1 - x0) * k;
  const svg = canvas(width, width * 0.75, 0, -width * 0.72);
  const road = [];
  for (let n = -10; n <= 110; n += 1) { const x = x0 + ((x1 - x0) * n) / 100; road.push(`${px(x).toFixed(1)} ${py(x).toFixed(1)}`); }
  const far = [...Array(61).keys()].map((n) => `${(n * 10 - 20).toFixed(0)} ${(-190 - 55 * Math.sin(n / 7) - 22 * Math.sin(n / 2.9)).toFixed(1)}`);
  svg.append(box(-900, -1200, 2400, 2400, "var(--sky)"), draw("circle", { cx: width * 0.24, cy: -width * 0.58, r: 30, fill: "light-dark(#ffe9b0, #dfe6ee)" }));
  svg.append(shape(`M-20 500L${far.join("L")}L600 500z`, "var(--hill-far)"), shape(`M-80 500L${road.join("L")}L700 500z`, "var(--hill)"), line(`M${road.join("L")}`, 4, "var(--road)"));
  const [fx, fy] = [px(scene.goal), py(scene.goal)];
  svg.append(line(`M${fx} ${fy}v-58`, 3.5, "var(--ink)"), shape(`M${fx + 1} ${fy - 58}l30 9 -30 10z`, "#d9573b"));
  const push = arrow();
  const car = group({ class: "moves" }, push, shape("M-23 -9v-10q0 -3 3 -3h7l7 -11q1.500 -2 4 -2h9q2.500 0 4 2l6 11 5 1q3 .5 3 3.500v8.500z", "var(--scarf)"), shape("M-9 -22l5.500 -8.500h7v8.500zM6.500 -22v-8.500h3.500l4.500 8.500z", "var(--sky)"), ...[-13, 14].map((x) => group({}, disc(x, -7, 7, "#22262a"), disc(x, -7, 3, "#cfd4d9"))));
  svg.append(car);
  const update = (s) => {
    moved(car, px(s.x), py(s.x), (-Math.atan(1.35 * Math.cos(3 * s.x)) * 180) / Math.PI);
    const name = s.action === null ? "wait" : scene.actions[s.action];
    show(push, name !== "wait");
    push.setAttribute("transform", name === "left" ? "translate(-27 -16) scale(-.8 .8)" : "translate(29 -16) scale(.8)");
  };
  const facts = (s) => [
    ["Position", `${decimal(s.x, 2)}, flag at ${scene.goal}`],
    ["Push", s.action === null ? "–" : scene.actions[s.action] === "wait" ? "none" : scene.actions[s.action]],
  ];
  return { svg, update, facts, rate: 20 };
}

function jobClock(scene) {
  const svg = canvas(400, 400);
  const clock = ring(200, 200, 130, 24, "var(--ring)");
  const left = words(200, 204, 120, "#2c2a28");
  svg.append(box(-400, -400, 1200, 1200, "var(--room)"), disc(200, 200, 150, "#fffaf0"), clock, left);
  const update = (s) => {
    const rest = Math.max(s.duration - s.elapsed, 0);
    left.textContent = scene.hidden ? "?" : rest;
    clock.set(scene.hidden ? 0 : 1 - rest / s.duration);
  };
  const facts = (s) => [
    ["Job", scene.hidden ? "running, ? left" : `${Math.max(s.duration - s.elapsed, 0)} left`],
    ["Looked at", s.checked ? "yes" : "not yet"],
  ];
  return { svg, update, facts, rate: 4 };
}

const SCENES = { cook: kitchen, coffee: coffeeRoom, pong: pongField, cartpole: cartPole, "mountain-car": mountain, job: jobClock };
