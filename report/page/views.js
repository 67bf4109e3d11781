// The two charts that zoom: timeline and heat map, on a canvas each. Mouse: drag, wheel with Ctrl (or once the
// chart has the focus), double click. Touch: drag sideways, two fingers. Keys: see `keysOf`.
"use strict";

function canvasOf(element, width, height) {
  const canvas = element.querySelector("canvas"), scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = width + "px";
  canvas.style.height = height + "px";
  const context = canvas.getContext("2d");
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  return context;
}

/// Zoom of D3 on `view`, with buttons; keys are the caller's. `redraw(transform)` after each change.
function zooming(view, redraw) {
  const state = {transform: d3.zoomIdentity};
  const zoom = d3.zoom().scaleExtent([1, 1e5]).on("zoom", event => {
    state.transform = (d3.event || event).transform;
    view.dataset.zoom = state.transform.k;
    redraw();
  });
  zoom.filter(event => {
    const happening = d3.event || event;
    return happening.type !== "wheel" || happening.ctrlKey || document.activeElement === view;
  });
  d3.select(view).call(zoom).style("touch-action", "pan-y");
  view.dataset.zoom = 1;
  state.size = (first, last) => zoom.extent([first, last]).translateExtent([first, last]);
  state.by = factor => d3.select(view).call(zoom.scaleBy, factor);
  state.move = (x, y) => d3.select(view).call(zoom.translateBy, x / state.transform.k, y / state.transform.k);
  state.reset = () => d3.select(view).call(zoom.transform, d3.zoomIdentity);
  const button = (text, name, act) => {
    const made = make("button", {type: "button", "aria-label": name, title: name}, text);
    made.addEventListener("click", act);
    return made;
  };
  state.buttons = [button("+", "Zoom in", () => state.by(2)), button("−", "Zoom out", () => state.by(0.5)),
                   button("Reset", "Reset the zoom", state.reset)];
  return state;
}

function keysOf(view, actions) {
  view.addEventListener("keydown", event => {
    const act = actions[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
}

const flag = {critical: 1, domain: 2, gpu: 4};
const eventOf = ([gpu, ready, flow, end, kind, source, target, bytes, flags]) => ({gpu, ready, flow, end, kind, source, target, bytes, flags});

/// Events that overlap stand below each other.
function stacked(events) {
  events.sort((a, b) => a.begin - b.begin);
  const free = [];
  for (const each of events) {
    let place = free.findIndex(end => end <= each.begin);
    if (place < 0) place = free.length < 6 ? free.length : free.indexOf(Math.min(...free));
    free[place] = each.end;
    each.place = place;
  }
  return Math.max(1, free.length);
}

function rowsOf(timeline, events, domain) {
  const bars = (name, list, begin) => {
    const placed = list.map(each => ({...each, begin: each[begin]}));
    return {name, events: placed, deep: stacked(placed)};
  };
  const rows = [bars("critical path", events.filter(each => each.flags & flag.critical), "ready")];
  rows[0].deep = 1;
  rows[0].events.forEach(each => { each.place = 0; });
  if (domain === null) {
    for (const each of timeline.domains) {
      const loads = [["NVLink", each.nvlink], ["network out", each.network_out], ["network in", each.network_in]];
      for (const [name, load] of loads) if (load) rows.push({name: `domain ${each.domain}: ${name}`, short: `${each.domain} ${name}`, load});
    }
    return rows;
  }
  for (const gpu of domain.gpus) {
    const own = events.filter(each => each.gpu === gpu);
    const network = own.filter(each => each.flags & flag.domain), nvlink = own.filter(each => (each.flags & flag.gpu) && !(each.flags & flag.domain));
    if (own.length > 0) rows.push(bars(`GPU ${gpu}`, own, "ready"));
    if (network.length > 0) rows.push(bars(`GPU ${gpu}: NIC`, network, "flow"));
    if (nvlink.length > 0) rows.push(bars(`GPU ${gpu}: NVLink`, nvlink, "flow"));
    const arriving = events.filter(each => each.target >= 0 && (each.flags & flag.gpu) && timeline.gpu_of_rank[each.target] === gpu);
    if (arriving.length > 0) rows.push(bars(`into GPU ${gpu}`, arriving, "flow"));
  }
  return rows;
}

function eventText(timeline, each) {
  const kind = timeline.kinds[each.kind];
  const who = each.target < 0 ? `of ${-each.target} ranks from rank ${each.source}`
    : each.source === each.target ? `on rank ${each.source}` : `from rank ${each.source} to rank ${each.target}`;
  return `${kind} ${who}, ${format.size(each.bytes)}: ${format.time(each.begin * 1e-9)} to ${format.time(each.end * 1e-9)}` +
    (each.flags & flag.critical ? ", on the critical path" : "");
}

function timelineView(timeline, seconds) {
  const all = timeline.events.map(eventOf), end = seconds * 1e9 || 1;
  const view = make("div", {class: "view rows", tabindex: "0", role: "application",
    "aria-label": "Timeline. Plus and minus zoom, left and right move, up and down choose a row, 0 resets.", "aria-describedby": "timeline-readout"});
  const spacer = make("div"), canvas = make("canvas", {"aria-hidden": "true"}), axis = make("div");
  const readout = make("output", {class: "readout", id: "timeline-readout", "aria-live": "polite"}, "Point at a row, or use the keys.");
  spacer.append(canvas);
  view.append(spacer);
  let rows = [], row = -1, width = 0, gutter = 130;
  const fills = timeline.kinds.map((kind, i) => d3.schemeTableau10[i % 10]);
  const state = zooming(view, () => draw());
  const scale = () => state.transform.rescaleX(d3.scaleLinear().domain([0, end]).range([gutter, width]));
  const heightOf = each => each.load ? 14 : Math.max(18, 6 * each.deep + 4);
  const shown = () => Math.min(view.clientHeight || 420, 420);

  function drawRow(context, each, top, x) {
    const height = heightOf(each), [from, to] = x.domain();
    if (each.load) {
      const step = end / each.load.length;
      each.load.forEach((load, s) => {
        if (load === 0 || (s + 1) * step < from || s * step > to) return;
        context.fillStyle = heat(load / 1000);
        context.fillRect(x(s * step), top + 1, Math.max(1, x((s + 1) * step) - x(s * step)), height - 2);
      });
      return;
    }
    const part = (height - 4) / each.deep;
    for (const event of each.events) {
      if (event.end < from || event.begin > to) continue;
      context.fillStyle = fills[event.kind];
      const left = x(event.begin), length = Math.max(0.7, x(event.end) - x(event.begin));
      context.fillRect(left, top + 2 + event.place * part, length, Math.max(1.5, part - 1));
      if (event.flags & flag.critical && each !== rows[0] && length > 3) {
        context.strokeStyle = colour("bound");
        context.strokeRect(left, top + 2 + event.place * part, length, Math.max(1.5, part - 1));
      }
    }
  }

  function draw() {
    width = view.clientWidth;  // without the scroll bar, if there is one
    if (width <= 0) return;
    state.size([gutter, 0], [width, 420]);
    const height = shown(), context = canvasOf(view, width, height), x = scale();
    context.clearRect(0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(gutter, 0, width - gutter, height);
    context.clip();
    rows.forEach((each, r) => {
      const top = each.top - view.scrollTop;
      if (top > height || top + heightOf(each) < 0) return;
      context.fillStyle = r === row ? colour("empty") : "transparent";
      context.fillRect(gutter, top, width - gutter, heightOf(each));
      drawRow(context, each, top, x);
    });
    context.restore();
    context.fillStyle = colour("ink");
    rows.forEach(each => {
      const top = each.top - view.scrollTop;
      if (top < height && top + heightOf(each) > 0) context.fillText(gutter < 100 && each.short ? each.short : each.name, 3, top + heightOf(each) / 2, gutter - 6);
    });
    const seconds = d3.scaleLinear().domain(x.domain().map(t => t * 1e-9)).range([gutter, width]);
    svg(axis, width, 24, "Time axis").style("width", width + "px").append("g").attr("class", "axis").attr("transform", "translate(1,2)").call(
      d3.axisBottom(seconds).ticks(Math.max(2, Math.floor((width - gutter) / 130))).tickFormat(s => {
        const span = seconds.domain()[1] - seconds.domain()[0];
        return span > 1e-2 ? +s.toFixed(4) + " s" : +(s * 1e3).toFixed(4) + " ms";
      }));
    [view.dataset.from, view.dataset.to] = x.domain();
    view.dataset.gutter = gutter;
  }

  function tell(r, time) {
    const each = rows[r];
    if (!each) return;
    row = r;
    if (each.load) {
      const s = Math.min(each.load.length - 1, Math.max(0, Math.floor(time / end * each.load.length)));
      readout.textContent = `${each.name}, at ${format.time(time * 1e-9)}: ${format.share(each.load[s] / 1000)} of its rate`;
    } else {
      const hits = each.events.filter(event => event.begin <= time && time <= event.end);
      readout.textContent = hits.length === 0 ? `${each.name}, at ${format.time(time * 1e-9)}: nothing that is shown`
        : `${each.name}: ${eventText(timeline, hits[0])}` + (hits.length > 1 ? `; ${hits.length - 1} more at that time` : "");
    }
    draw();
  }

  function choose(r) {
    const each = rows[Math.max(0, Math.min(rows.length - 1, r))];
    if (each.top < view.scrollTop) view.scrollTop = each.top;
    if (each.top + heightOf(each) > view.scrollTop + shown()) view.scrollTop = each.top + heightOf(each) - shown();
    tell(rows.indexOf(each), d3.mean(scale().domain()));
  }

  function show(domain) {
    rows = rowsOf(timeline, all, domain);
    row = -1;
    let top = 0;
    for (const each of rows) { each.top = top; top += heightOf(each); }
    spacer.style.height = top + "px";
    view.style.height = Math.min(top + 2, 420) + "px";
    view.scrollTop = 0;
    draw();
  }

  view.addEventListener("scroll", () => draw());
  view.addEventListener("pointermove", event => {
    const box = view.getBoundingClientRect(), y = event.clientY - box.top + view.scrollTop;
    const r = rows.findIndex(each => y >= each.top && y < each.top + heightOf(each));
    if (event.clientX - box.left > gutter) tell(r, scale().invert(event.clientX - box.left));
  });
  keysOf(view, {"+": () => state.by(2), "=": () => state.by(2), "-": () => state.by(0.5), "0": state.reset, Home: state.reset,
    ArrowLeft: () => state.move(60, 0), ArrowRight: () => state.move(-60, 0),
    ArrowUp: () => choose(row - 1), ArrowDown: () => choose(row + 1)});

  const choice = make("select", {id: "timeline-domain"}, make("option", {value: ""}, "all NVLink domains (load)"),
    ...timeline.domains.map((each, d) => make("option", {value: d}, `domain ${each.domain}: ${each.gpus.length} GPUs, operations`)));
  choice.addEventListener("change", () => show(choice.value === "" ? null : timeline.domains[Number(choice.value)]));
  const whole = chart((element, available) => {
    gutter = available < 560 ? 92 : 170;
    draw();
  });
  whole.append(view, axis);
  show(null);
  return [make("div", {class: "tools"}, make("label", {for: "timeline-domain"}, "Show"), choice, ...state.buttons), whole, readout,
          key(timeline.kinds.map((kind, i) => [kind, fills[i]])), ramp("load: 0 %", "100 %")];
}

function heatView(traffic) {
  const view = make("div", {class: "view", tabindex: "0", role: "application", "aria-describedby": "traffic-readout",
    "aria-label": "Heat map of traffic. Arrow keys choose a cell, plus and minus zoom, 0 resets."});
  view.append(make("canvas", {"aria-hidden": "true"}));
  const readout = make("output", {class: "readout", id: "traffic-readout", "aria-live": "polite"}, "Point at a cell, or use the arrow keys.");
  const n = traffic.names.length, bytes = new Map(traffic.cells.map(([from, to, value]) => [from * n + to, value]));
  const least = d3.min(traffic.cells, cell => cell[2]) || 1;
  const shade = d3.scaleLog().domain([least, Math.max(least * 1.001, traffic.largest_bytes)]).range([0.04, 1]);
  let side = 0, cell = [0, 0];
  const state = zooming(view, () => draw());
  function draw() {
    if (side <= 0) return;
    const context = canvasOf(view, side, side), {x, y, k} = state.transform, step = side / n * k;
    context.fillStyle = colour("empty");
    context.fillRect(0, 0, side, side);
    const gap = step > 8 ? 1 : 0;
    for (const [from, to, value] of traffic.cells) {
      const left = x + to * step, top = y + from * step;
      if (left > side || top > side || left + step < 0 || top + step < 0) continue;
      context.fillStyle = heat(shade(value));
      context.fillRect(left, top, Math.max(0.6, step - gap), Math.max(0.6, step - gap));
    }
    context.strokeStyle = colour("focus");
    context.lineWidth = 2;
    context.strokeRect(x + cell[1] * step, y + cell[0] * step, Math.max(3, step), Math.max(3, step));
  }
  function tell(from, to) {
    cell = [Math.max(0, Math.min(n - 1, from)), Math.max(0, Math.min(n - 1, to))];
    const value = bytes.get(cell[0] * n + cell[1]) || 0;
    readout.textContent = `${traffic.names[cell[0]]} to ${traffic.names[cell[1]]}: ${format.size(value)}`;
    draw();
  }
  view.addEventListener("pointermove", event => {
    const box = view.getBoundingClientRect(), [x, y] = state.transform.invert([event.clientX - box.left, event.clientY - box.top]);
    tell(Math.floor(y / side * n), Math.floor(x / side * n));
  });
  keysOf(view, {"+": () => state.by(2), "=": () => state.by(2), "-": () => state.by(0.5), "0": state.reset, Home: state.reset,
    ArrowLeft: () => tell(cell[0], cell[1] - 1), ArrowRight: () => tell(cell[0], cell[1] + 1),
    ArrowUp: () => tell(cell[0] - 1, cell[1]), ArrowDown: () => tell(cell[0] + 1, cell[1])});
  const whole = chart((element, available) => {
    side = Math.min(available - 2, 620);
    view.style.width = side + 2 + "px";
    state.size([0, 0], [side, side]);
    draw();
  });
  whole.append(view);
  return [make("div", {class: "tools"}, ...state.buttons), make("p", {class: "note"}, "From: rows, first at the top. To: columns, first at the left. Keys: arrows choose a cell, + and − zoom, 0 resets."),
          whole, readout, ramp(format.size(least), format.size(traffic.largest_bytes) + " (logarithmic)")];
}
