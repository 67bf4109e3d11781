// Charts without zoom: policies against the bound, the critical path, single changes, the machine.
"use strict";

function svg(element, width, height, label) {
  d3.select(element).selectAll("svg").remove();
  return d3.select(element).append("svg").attr("role", "img").attr("aria-label", label)
    .attr("viewBox", `0 0 ${width} ${height}`).attr("height", height);
}

function key(parts) {
  return make("p", {class: "key"}, ...parts.map(([name, style]) =>
    make("span", {}, make("i", {style: "background:" + style}), name)));
}

/// The label at 0 would stand half outside.
const timeAxis = (scale, width) => group => {
  group.call(d3.axisBottom(scale).ticks(Math.max(3, Math.floor(width / 110))).tickFormat(s => +s.toPrecision(6) + " s"));
  group.select(".tick text").attr("text-anchor", "start");
};

function policiesChart(rows) {
  const bound = page.lower_bound_seconds;
  const published = row => page.published.filter(each => each.policy === row.policy && each.seconds !== null);
  const label = "Bars: predicted time by policy. " +
    rows.map(row => `${row.policy} ${format.time(row.seconds)}`).join(", ") + `. Lower bound ${format.time(bound)}.`;
  return chart((element, width) => {
    const most = d3.max(rows, row => Math.max(row.seconds, ...published(row).map(each => each.seconds[1])));
    const x = d3.scaleLinear().domain([0, Math.max(most, bound) || 1]).range([0, width - 84]);
    const step = 42, height = rows.length * step + 34;
    const top = svg(element, width, height, label);
    const bars = top.append("g");
    top.append("line").attr("x1", x(bound) + 1).attr("x2", x(bound) + 1).attr("y1", 2).attr("y2", height - 24)
      .attr("stroke", colour("bound")).attr("stroke-width", 2).attr("stroke-dasharray", "5 3");
    const names = top.append("g");
    rows.forEach((row, i) => {
      const place = `translate(1,${i * step + 14})`, line = bars.append("g").attr("transform", place);
      const words = names.append("g").attr("transform", place);
      words.append("text").text(row.policy);
      let from = 0;
      for (const name of ["bulk", "misc", "other"]) {
        const length = row[name + "_seconds"];
        line.append("rect").attr("x", x(from)).attr("y", 6).attr("height", 14).attr("width", x(length)).attr("fill", colour(name));
        from += length;
      }
      let end = row.seconds;
      for (const each of published(row)) {
        const [low, high] = each.seconds.map(x);
        end = Math.max(end, each.seconds[1]);
        line.append("path").attr("d", `M${low},4V22M${high},4V22M${low},22H${high}`).attr("stroke", colour("ink"))
          .attr("stroke-width", 1.5).attr("fill", "none");
      }
      words.append("text").attr("x", x(end) + 5).attr("y", 18).text(format.time(row.seconds));
    });
    top.append("g").attr("class", "axis").attr("transform", `translate(1,${height - 24})`).call(timeAxis(x, width));
  });
}

function pathChart(path, seconds) {
  const names = [...new Set(path.map(each => each.what))];
  const fill = d3.scaleOrdinal(names, d3.schemeTableau10);
  const drawing = chart((element, width) => {
    const x = d3.scaleLinear().domain([0, seconds || 1]).range([0, width - 40]);
    const top = svg(element, width, 62, "The longest parts of the critical path along time; the table has each.");
    top.append("rect").attr("x", 1).attr("y", 4).attr("width", x(seconds)).attr("height", 26).attr("fill", colour("empty"));
    for (const each of path) {
      top.append("rect").attr("x", 1 + x(each.begin_seconds)).attr("y", 4).attr("height", 26)
        .attr("width", Math.max(1, x(each.end_seconds - each.begin_seconds))).attr("fill", fill(each.what))
        .append("title").text(`${each.what}: ${format.time(each.end_seconds - each.begin_seconds)}`);
    }
    top.append("g").attr("class", "axis").attr("transform", "translate(1,34)").call(timeAxis(x, width));
  });
  return [drawing, key(names.map(name => [name, fill(name)]))];
}

function changesChart(changes) {
  const rows = changes.filter(row => row.change_seconds !== undefined);
  return chart((element, width) => {
    const span = d3.extent([0, ...rows.map(row => row.change_seconds)]);
    const x = d3.scaleLinear().domain(span).range([2, width - 90]);
    const step = 36, top = svg(element, width, rows.length * step + 8, "Bars: gain (left) or loss (right) of each single change; the table has the numbers.");
    rows.forEach((row, i) => {
      const line = top.append("g").attr("transform", `translate(0,${i * step + 14})`);
      const [low, high] = [x(Math.min(0, row.change_seconds)), x(Math.max(0, row.change_seconds))];
      const most = Math.floor(width / 7);
      line.append("text").attr("x", 2).text(row.change.length > most ? row.change.slice(0, most - 1) + "…" : row.change);
      line.append("rect").attr("x", low).attr("y", 5).attr("height", 10).attr("width", Math.max(1, high - low))
        .attr("fill", colour(row.change_seconds > 0 ? "misc" : "bulk"));
      line.append("text").attr("class", "soft").attr("x", high + 5).attr("y", 15).text(format.change(row.change_seconds));
    });
    top.append("line").attr("x1", x(0)).attr("x2", x(0)).attr("y2", rows.length * step).attr("stroke", colour("line"));
  });
}

const percent = share => share === null ? "none" : Math.round(100 * share) + " %";

/// A host: per GPU a column of three cells: NVLink (the busier way), NIC out, NIC in.
function hostDrawing(host) {
  const cell = 9, cells = [];
  host.gpus.forEach((gpu, g) => {
    const nvlink = Math.max(gpu.nvlink_out || 0, gpu.nvlink_in || 0);
    [gpu.nvlink_out === null && gpu.nvlink_in === null ? null : nvlink, gpu.nic_out, gpu.nic_in].forEach((share, r) => {
      cells.push({x: g, y: r, share, text: `GPU ${gpu.gpu}, ${["NVLink", "NIC out", "NIC in"][r]}: ${percent(share)}`});
    });
  });
  if (host.gpus.length === 0) {
    cells.push({x: 0, y: 0, share: host.nvlink_most, text: "NVLink, most: " + percent(host.nvlink_most)});
    cells.push({x: 0, y: 1, share: host.nic_most, text: "NIC, most: " + percent(host.nic_most)});
  }
  const width = cell * (1 + d3.max(cells, each => each.x)), height = cell * (1 + d3.max(cells, each => each.y)) + 2;
  const box = make("div", {class: "host"}, make("p", {}, "host " + host.host));
  const label = `host ${host.host}: NVLink at most ${percent(host.nvlink_most)}, NIC at most ${percent(host.nic_most)}`;
  svg(box, width, height, label).attr("width", width).selectAll("rect").data(cells.filter(each => each.share !== null)).enter().append("rect")
    .attr("x", each => each.x * cell).attr("y", each => each.y * cell + (each.y > 0 && host.gpus.length > 0 ? 2 : 0)).attr("width", cell - 1).attr("height", cell - 1)
    .attr("fill", each => heat(each.share)).append("title").text(each => each.text);
  return box;
}

function machineDrawing(fabric) {
  return chart(element => {
    const machine = make("div", {class: "machine"}), leaves = make("div", {class: "machine"});
    for (const domain of fabric.domains) {
      const box = make("div", {class: "domain"});
      if (domain.hosts.length > 1) box.append(make("p", {}, "NVLink domain " + domain.domain));
      box.append(...domain.hosts.map(hostDrawing));
      machine.append(box);
    }
    for (const leaf of fabric.leaves) {
      leaves.append(make("div", {class: "leaf"}, make("i", {style: "background:" + heat(Math.max(leaf.up || 0, leaf.down || 0))}),
        leaf.up === null && leaf.down === null ? leaf.leaf : `${leaf.leaf}: up ${percent(leaf.up)}, down ${percent(leaf.down)}`));
    }
    element.replaceChildren(ramp("0 %", "100 % of the time at full rate"), machine,
      ...(fabric.leaves.length > 0 ? [make("h3", {}, "Leaf switches, links to the spines"), leaves] : []));
  });
}
