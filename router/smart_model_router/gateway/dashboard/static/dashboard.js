// The dashboard. Everything that comes from elsewhere is text: it is set as textContent and never read as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const NO_TARGET = "";
const SHADES = ["#3b7dd8", "#2f9a5d", "#b5651d", "#7b5bb5", "#0f9aa8", "#c2478b", "#7d8b1d", "#5f6f86", "#8c8f94"];
const FAILED = "#cf3347";
const WORDS = { closed: "ok", open: "open", half_open: "probing", isolated: "isolated" };
const LOOKS = { closed: "good", open: "bad", half_open: "warn", isolated: "off" };
const RESTS = { wait: "waiting", wall: "at its wall", off: "off", cooldown: "cooling", offline: "offline", throttle: "throttled" };

let key = sessionStorage.getItem("key") || "";
let about = { admin: false, source: "" };
let picture = null;
let chosen = "";
let chart = null;

function make(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function shape(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const clock = (at, seconds) =>
  new Date(at * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });
const missing = (value) => value === null || value === undefined;
const secs = (value) => (missing(value) ? "-" : value < 0.0995 ? `${(value * 1000).toFixed(0)} ms` : `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} s`);
const share = (value) => (missing(value) ? "-" : `${(value * 100).toFixed(value > 0 && value < 0.1 ? 1 : 0)} %`);
const figure = (value, digits = 1) => (missing(value) ? "-" : value.toFixed(digits));
const whole = (value) => (missing(value) ? "-" : Math.round(value).toLocaleString());
const ordinal = (n) => `${n}${n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10] || "th"}`;

function countdown(seconds) {
  if (missing(seconds)) return "-";
  const left = Math.max(0, seconds);
  return left < 90 ? `${left.toFixed(0)} s` : left < 5400 ? `${(left / 60).toFixed(0)} min` : `${(left / 3600).toFixed(1)} h`;
}

// A cell is written only when it changed: 200 targets a second cost nothing then.
function put(cell, text, className) {
  if (cell.textContent !== text) cell.textContent = text;
  if (className !== undefined && cell.className !== className) cell.className = className;
}

// Keeps one element for each key, in order; `fresh` makes one, `fill` writes into it.
function keep(parent, items, keyOf, fresh, fill) {
  const known = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  items.forEach((item, place) => {
    const name = keyOf(item);
    let child = known.get(name);
    if (!child) {
      child = fresh(item);
      child.dataset.key = name;
    }
    known.delete(name);
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] || null);
    fill(child, item);
  });
  for (const gone of known.values()) gone.remove();
}

// 1. One sentence a model -----------------------------------------------------------------------------

function sentence(model) {
  const parts = [];
  if (model.target) {
    const place = model.choice === null ? "" : ` (${ordinal(model.choice)} choice${model.degraded ? `, degraded to ${model.tier}` : ""})`;
    parts.push(`${model.name}: served by ${model.target}${place} since ${clock(model.since)}`);
  } else {
    parts.push(`${model.name}: no target can serve it since ${clock(model.since)}`);
  }
  for (const other of model.missing) {
    const due = missing(other.due) ? "" : `, asked again in ${countdown(other.due)}`;
    parts.push(`${other.target} ${RESTS[other.why] || other.why.replace("_", " ")}${other.run ? `: ${other.run}` : ""}${due}`);
  }
  return parts.join("; ");
}

function drawModels() {
  keep($("models"), picture.models, (model) => model.name, () => make("li"), (line, model) => {
    put(line, sentence(model), !model.target ? "bad" : model.choice > 1 || model.degraded || model.missing.length ? "warn" : "");
  });
}

// 2. The targets --------------------------------------------------------------------------------------

function pill(target) {
  if (target.state !== "closed") return [WORDS[target.state] || target.state, LOOKS[target.state] || "off"];
  if (RESTS[target.refusal]) return [RESTS[target.refusal], "warn"];
  return [WORDS.closed, "good"];
}

function freshTarget(target) {
  const row = make("tr");
  const name = make("th", target.id);
  name.scope = "row";
  row.append(name);
  const state = make("td");
  state.append(make("span", "", "pill"), make("span", "", "why"));
  row.append(state);
  for (let n = 0; n < 8; n += 1) row.append(make("td", "", "n"));
  row.append(make("td"), make("td", "", "n"));
  const actions = make("td", null, "act");
  for (const [verb, path] of [["Isolate", "isolate"], ["Close", "enable"]]) {
    const button = make("button", verb);
    button.type = "button";
    button.setAttribute("aria-label", `${verb} ${target.id}`);
    button.addEventListener("click", () => act(`/api/targets/${path}`, { name: target.id }, `${verb} ${target.id}`));
    actions.append(button);
  }
  row.append(actions);
  row.setAttribute("role", "row");
  for (const cell of row.children) cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
  return row;
}

function fillTarget(row, target) {
  const cells = row.children;
  const [word, look] = pill(target);
  put(cells[1].children[0], word, `pill ${look}`);
  const why = look === "good" ? "" : target.run || target.because || "";
  put(cells[1].children[1], why);
  const figures = [
    figure(target.rate, 2), share(target.errors), secs(target.p50), secs(target.p95), secs(target.p99), secs(target.ttft),
    missing(target.in_flight) ? "-" : `${target.in_flight} / ${target.slots}`, whole(target.tokens),
  ];
  figures.forEach((text, n) => put(cells[n + 2], text));
  put(cells[10], target.state === "closed" && missing(target.due) ? "-" : countdown(target.due));
  put(cells[11], missing(target.cost_hour) ? "-" : figure(target.cost_hour, 2));
  const cached = missing(target.cached) ? "" : `, ${share(target.cached)} of them cached`;
  cells[11].title = missing(target.prompt_hour) ? "" : `${whole(target.prompt_hour)} prompt tokens an hour${cached}`;
  cells[12].hidden = !about.admin;
}

function drawTargets() {
  document.querySelector("#targets thead .act").hidden = !about.admin;
  $("operator").hidden = !about.admin;
  keep(document.querySelector("#targets tbody"), picture.targets, (target) => target.id, freshTarget, fillTarget);
}

async function act(path, body, what) {
  const told = $("act-told");
  try {
    const reply = await fetch(path, { method: "POST", headers: asked(), body: JSON.stringify(body) });
    const said = await reply.json();
    const done = said.scope === "process" ? `done in this process alone: ${said.note}` : "done";
    told.textContent = `${what}: ${reply.ok ? done : said.error ? said.error.message : reply.status}`;
    return reply.ok ? said : null;
  } catch (error) {
    told.textContent = `${what}: ${error.message}`;
    return null;
  }
}

$("drain").addEventListener("click", async () => {
  const { draining } = picture.system;
  const said = await act("/api/drain", { on: !draining }, draining ? "Take requests again" : "Drain");
  if (!said) return;
  picture.system.draining = said.draining;
  drawSystem();
});

// 3. Served by target ---------------------------------------------------------------------------------

// To read a width after the page was written to would make the browser lay all of it out at once.
let chartWidth = 300;
new ResizeObserver(([entry]) => {
  chartWidth = Math.max(100, Math.floor(entry.contentRect.width));
  if (chart) chart.setSize({ width: chartWidth, height: 200 });
}).observe($("chart"));

function drawChart() {
  const { step, end, series } = picture.served;
  const length = series.length ? series[0][1].length : 0;
  const times = Array.from({ length }, (_, n) => Math.round(end) - (length - 1 - n) * step);
  const sums = [];
  let below = new Array(length).fill(0);
  for (const [, counts] of series) {
    below = counts.map((count, n) => below[n] + count);
    sums.push(below);
  }
  const shadeOf = (name, n) => (name === NO_TARGET ? FAILED : SHADES[n % SHADES.length]);
  const names = series.map(([name]) => name);
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const look = JSON.stringify([names, dark]);
  const data = [times, ...sums.slice().reverse()];
  const width = chartWidth;
  if (!chart || chart.look !== look) {
    if (chart) chart.destroy();
    const ink = getComputedStyle(document.body).getPropertyValue("--quiet");
    const axis = { stroke: ink, font: "12px system-ui, sans-serif", grid: { show: false }, ticks: { show: false } };
    chart = new uPlot({
      width, height: 200, legend: { show: false }, cursor: { show: false }, scales: { y: { range: (_, __, top) => [0, Math.max(1, top)] } },
      axes: [axis, { ...axis, size: 40, label: `answers in ${step} s`, labelSize: 18, labelFont: axis.font }],
      series: [{}, ...names.map((name, n) => ({ stroke: shadeOf(name, n), fill: shadeOf(name, n), width: 1, points: { show: false } })).reverse()],
    }, data, $("chart"));
    chart.look = look;
    $("legend").replaceChildren(...names.map((name, n) => {
      const line = make("li");
      const dot = shape("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" });
      dot.append(shape("rect", { width: 1, height: 1, fill: shadeOf(name, n) }));
      line.append(dot, make("span", name === NO_TARGET ? "no target (failed)" : name));
      return line;
    }));
  } else {
    chart.setData(data);
  }
  put($("chart-text"), series.map(([name, counts]) => `${name || "no target"}: ${counts.reduce((a, b) => a + b, 0)} requests`).join("; "));
}

// 4. Errors, 5. transitions ---------------------------------------------------------------------------

function drawErrors() {
  keep(document.querySelector("#errors tbody"), picture.errors, (line) => line.class, (line) => {
    const row = make("tr");
    const head = make("th", line.class);
    head.scope = "row";
    row.append(head, make("td", "", "n"), make("td"));
    row.lastChild.style.whiteSpace = "normal";
    return row;
  }, (row, line) => {
    put(row.children[1], whole(line.count));
    put(row.children[2], line.targets.map(([target, count]) => `${target} x ${count}`).join(", "));
  });
}

// A gateway that began anew counts from one again.
const moveKey = (move) => `${move.number} ${move.at}`;

function drawMoves() {
  keep($("moves"), picture.transitions, moveKey, (move) => {
    const line = make("li", null, move.bad ? "bad" : "fine");
    const when = make("time", clock(move.at, true));
    when.dateTime = new Date(move.at * 1000).toISOString();
    line.append(when, make("strong", move.subject), document.createTextNode(` ${move.text}`));
    return line;
  }, () => {});
}

// A transition comes before the picture that has it: the pill and the list show it at once.
function moved(move) {
  if (!picture) return;
  if (!picture.transitions.some((known) => moveKey(known) === moveKey(move))) picture.transitions.unshift(move);
  drawMoves();
  if (move.kind !== "breaker") return;
  const target = picture.targets.find((one) => one.id === move.subject);
  if (!target) return;
  target.state = move.state;
  drawTargets();
}

// 6. Requests and the way of one ----------------------------------------------------------------------

function drawRequests() {
  keep(document.querySelector("#requests tbody"), picture.requests, (line) => line.request_id, (line) => {
    const row = make("tr");
    const head = make("th");
    head.scope = "row";
    const button = make("button", line.request_id, "link");
    button.type = "button";
    button.addEventListener("click", () => choose(line.request_id));
    head.append(button);
    const outcome = make("td");
    outcome.append(make("span", line.outcome, `pill ${{ ok: "good", fallback: "warn", degraded: "warn", cancelled: "off" }[line.outcome] || "bad"}`));
    row.append(head, make("td", clock(line.at, true)), make("td", line.model), outcome, make("td", line.target || "-"),
      make("td", `${line.attempts}${line.refusals ? ` + ${line.refusals} refused` : ""}`, "n"), make("td", figure(line.seconds, 3), "n"));
    return row;
  }, (row, line) => row.setAttribute("aria-selected", String(line.request_id === chosen)));
}

async function choose(id) {
  chosen = id;
  drawRequests();
  const reply = await fetch(`/dashboard/requests/${encodeURIComponent(id)}`, { headers: asked() });
  const way = await reply.json();
  if (chosen !== id) return;
  const box = $("waterfall");
  if (!reply.ok) {
    box.replaceChildren(make("p", way.error ? way.error.message : `HTTP ${reply.status}`));
    return;
  }
  const head = make("h3", `${way.request_id}: ${way.outcome}${way.target ? ` by ${way.target}` : ""} in ${figure(way.seconds, 3)} s`);
  const list = make("ol");
  const span = Math.max(way.seconds, ...way.steps.map((step) => step.until), 0.001);
  for (const step of way.steps) list.append(wayStep(step, span));
  box.replaceChildren(head, list);
  if (!way.steps.length) box.append(make("p", way.note || "No call was made.", "quiet"));
}

function wayStep(step, span) {
  const line = make("li");
  const took = secs(step.until - step.from);
  const said = {
    attempt: () => `asked ${step.target}: ${step.failure || "answered"}${step.status ? ` (HTTP ${step.status})` : ""} after ${took}${step.probe ? ", a probe" : ""}`,
    refusal: () => `not asked ${step.target}: ${step.reason}${missing(step.retry_after) ? "" : `, due in ${countdown(step.retry_after)}`}`,
    wait: () => `waited ${took}${step.target ? `, then ${step.target} was free` : ""}`,
  }[step.kind]();
  line.append(make("span", said));
  line.dataset.kind = step.kind;
  const drawn = shape("svg", { viewBox: "0 0 1000 10", preserveAspectRatio: "none", "aria-hidden": "true" });
  const x = (Math.max(0, step.from) / span) * 1000;
  const look = { attempt: step.failure ? "bar-bad" : "bar-ok", refusal: "bar-refusal", wait: "bar-wait" }[step.kind];
  drawn.append(shape("rect", { x: Math.min(x, 994), y: 0, height: 10, width: Math.max(6, ((step.until - step.from) / span) * 1000), class: look }));
  if (!missing(step.first)) drawn.append(shape("rect", { x: (step.first / span) * 1000, y: 0, height: 10, width: 3, class: "bar-first" }));
  line.append(drawn);
  return line;
}

// 7. Research, where the gateway has it ---------------------------------------------------------------

const STATES = { completed: "good", running: "good", paused: "warn", partial: "warn", interrupted: "warn", cancelled: "off" };

function drawResearch() {
  const { research } = picture;
  $("research").hidden = !research;
  if (!research) return;
  const { running, problem } = research;
  put($("research-told"), problem || `${running === 1 ? "1 run is" : `${running} runs are`} open.`, problem ? "bad" : "quiet");
  keep(document.querySelector("#runs tbody"), research.runs, (run) => run.run, (run) => {
    const row = make("tr");
    const head = make("th", run.topic.length > 120 ? `${run.topic.slice(0, 119)}…` : run.topic);
    head.scope = "row";
    head.title = `${run.run}: ${run.topic}`;
    const state = make("td");
    state.append(make("span", "", "pill"), make("span", "", "why"));
    row.append(head, make("td", missing(run.key) ? "-" : run.key), state);
    for (let n = 0; n < 3; n += 1) row.append(make("td", "", "n"));
    row.append(make("td"));
    return row;
  }, (row, run) => {
    const cells = row.children;
    put(cells[2].children[0], run.state, `pill ${STATES[run.state] || "bad"}`);
    put(cells[2].children[1], run.delivery);
    put(cells[3], run.round ? `${run.round} / ${run.max_rounds}` : "-");
    put(cells[4], figure(run.ci, 2));
    put(cells[5], `${figure(run.spent.usd, 2)} / ${figure(run.budget.usd, 2)}`);
    put(cells[6], clock(run.changed_at, true));
  });
}

// The stream ------------------------------------------------------------------------------------------

function drawSystem() {
  const { open_ratio: ratio, offline, shedding, draining, alone } = picture.system;
  const words = [`${share(ratio)} of the providers open`];
  if (offline) words.push("offline: no remote provider can be reached");
  if (shedding) words.push("shedding load");
  if (draining) words.push("draining: this server is not ready");
  if (alone) words.push(`decides alone since ${clock(alone.since)}: ${alone.reason}`);
  put($("system"), words.join(", "), ratio > 0 || offline || shedding || draining || alone ? "bad" : "");
  put($("drain"), draining ? "Take requests again" : "Drain this server");
  put($("link"), `${about.source || "this process"}, ${clock(picture.at, true)}`);
}

function draw() {
  $("main").hidden = false;
  drawSystem();
  drawModels();
  drawTargets();
  drawChart();
  drawErrors();
  drawMoves();
  drawRequests();
  drawResearch();
}

let due = false;
function drawSoon() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    draw();
  });
}

function take(event, data) {
  if (event === "about") about = JSON.parse(data);
  if (event === "transition") moved(JSON.parse(data));
  if (event === "snapshot") {
    picture = JSON.parse(data);
    drawSoon();
  }
}

const asked = () => (key ? { authorization: `Bearer ${key}` } : {});

async function look() {
  const reply = await fetch("/dashboard/stream", { headers: asked(), cache: "no-store" });
  if (reply.status === 401 || reply.status === 403) {
    $("key").hidden = false;
    $("system").textContent = "The dashboard is not shown.";
    const said = await reply.json().catch(() => null);
    if (reply.status === 403) $("key-problem").textContent = said?.error?.message ?? "HTTP 403";
    else if (!key) $("system").textContent = "A key with `admin: true` is needed.";
    else $("key-problem").textContent = "This key is not one of the gateway's.";
    $("key-text").focus();
    return false;
  }
  if (!reply.ok) throw new Error(`HTTP ${reply.status}`);
  $("key").hidden = true;
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return true;
    held += value;
    const frames = held.split("\n\n");
    held = frames.pop();
    for (const frame of frames) {
      const lines = frame.split("\n");
      const event = lines.find((line) => line.startsWith("event: "));
      const data = lines.find((line) => line.startsWith("data: "));
      if (event && data) take(event.slice(7), data.slice(6));
    }
  }
}

async function run() {
  for (let pause = 1000; ; ) {
    try {
      if (!(await look())) return;
      pause = 1000;
    } catch {
      pause = Math.min(pause * 2, 15000);
    }
    $("link").textContent = "The connection is lost; trying again.";
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

$("key").addEventListener("submit", (event) => {
  event.preventDefault();
  key = $("key-text").value;
  sessionStorage.setItem("key", key);
  $("key-text").value = "";
  $("key-problem").textContent = "";
  run();
});
run();
