// The page, section after section: numbers first, then the chart of them.
"use strict";

const report = page.report;
const predicted = page.policies.map((row, index) => ({row, index})).filter(each => each.row.seconds !== undefined);
const chosen = predicted.find(each => each.row.policy === report.policy);

function summary() {
  const policy = "/policies/" + chosen.index;
  document.getElementById("lead").append(
    "Fastest: ", make("strong", {}, report.policy), ", ", figure(policy + "/seconds", "time"), "; no plan can be faster than ",
    figure("/lower_bound_seconds", "time"), ".");
  section("summary", "Summary", figures([
    ["fastest policy", report.policy],
    ["predicted time", figure(policy + "/seconds", "time")],
    ["lower bound", figure("/lower_bound_seconds", "time")],
    ["efficiency (bound / time)", figure(policy + "/efficiency", "share")],
    ["software, of the time", figure(policy + "/software_seconds", "time")],
    ["to move", figure("/payload_bytes", "size")],
    ["over the network", figure(policy + "/network_bytes", "size")],
    ["over NVLink", figure(policy + "/nvlink_bytes", "size")],
    ["staging, most on a GPU", figure(policy + "/peak_staging_bytes", "size")]
  ]), figures([
    ["what binds", figure(policy + "/binding_resource", "words"), true],
    ["what gives the bound", page.lower_bound_binding || "nothing has to move", true]
  ]));
}

function policies() {
  const columns = [{name: "policy"}, {name: "time"}, {name: "bulk"}, {name: "misc"}, {name: "other"}, {name: "software"}, {name: "efficiency"},
                   {name: "network"}, {name: "NVLink"}, {name: "staging/GPU"}, {name: "what binds", words: true}];
  const rows = predicted.map(({row, index}) => [row.policy,
    ...[["seconds", "time"], ["bulk_seconds", "time"], ["misc_seconds", "time"], ["other_seconds", "time"], ["software_seconds", "time"],
        ["efficiency", "share"], ["network_bytes", "size"], ["nvlink_bytes", "size"], ["peak_staging_bytes", "size"],
        ["binding_resource", "words"]].map(([field, kind]) => figure(`/policies/${index}/${field}`, kind))]);
  const made = section("policies", "Policies compared",
    table("Every policy planned, proven and predicted", columns, rows, predicted.indexOf(chosen)),
    policiesChart(predicted.map(each => each.row)),
    key([["bulk", "var(--bulk)"], ["misc", "var(--misc)"], ["other", "var(--other)"], ["lower bound (dashed)", "var(--bound)"], ["published range (bracket)", "var(--ink)"]]));
  for (const row of page.policies) {
    if (row.seconds === undefined) made.append(note(`${row.policy}: ${row.refused || row.stopped || row.violation}`));
  }
  if (page.published.length > 0) {
    made.append(table("Published for this refit", [{name: "row"}, {name: "policy", short: true}, {name: "from"}, {name: "to"}, {name: "source", words: true}],
      page.published.map((row, i) => [row.id, row.policy, row.seconds ? figure(`/published/${i}/seconds/0`, "time") : "-",
                                      row.seconds ? figure(`/published/${i}/seconds/1`, "time") : "-", row.source])));
  }
}

function terms() {
  const policy = "/policies/" + chosen.index;
  section("terms", "What the time consists of", note(`Along the critical path of ${report.policy}; the parts add up to its time.`),
    table("Terms of the predicted time", [{name: "term"}, {name: "time"}, {name: "bulk"}, {name: "misc"}, {name: "other"}],
      chosen.row.terms.map((term, i) => [term.term.replace(/_/g, " "),
        ...["seconds", "bulk_seconds", "misc_seconds", "other_seconds"].map(field => figure(`${policy}/terms/${i}/${field}`, "time"))])));
}

function timeline() {
  const made = report.timeline;
  const kept = made.events.length, text = made.dropped_operations === 0 ? ["all ", figure("/report/timeline/operations", "count")]
    : [`${format.count(kept)} of `, figure("/report/timeline/operations", "count"),
       ", those of the critical path (", figure("/report/timeline/critical_operations", "count"), ") first, then the longest; ",
       figure("/report/timeline/dropped_operations", "count"), " shorter ones, of ", figure("/report/timeline/dropped_bytes", "size"), ", are left out (--trace FILE has more)"];
  section("timeline", "Timeline", note(`Of ${report.policy}. Loads: ${Math.round(report.seconds / (made.step_seconds || 1))} steps of `,
      figure("/report/timeline/step_seconds", "time"), ". Operations: ", ...text, "."),
    note("Keys, with the chart in focus: + and − zoom, ← and → move, ↑ and ↓ choose a row, 0 resets. Mouse: drag; wheel with Ctrl, or in focus. Of a domain: what each GPU starts (collectives stand with their root), what leaves it, what arrives."),
    ...timelineView(made, report.seconds));
}

function traffic() {
  const made = report.traffic, single = made.unit === "rank";
  const order = d3.range(made.cells.length).sort((a, b) => made.cells[b][2] - made.cells[a][2] || a - b).slice(0, 12);
  const largest = table("Largest cells", [{name: "from"}, {name: "to", short: true}, {name: "bytes"}],
    order.map(i => [made.names[made.cells[i][0]], made.names[made.cells[i][1]], figure(`/report/traffic/cells/${i}/2`, "size")]));
  section("traffic", "Traffic between ranks", note(figure("/report/traffic/bytes", "size"), " arrive at other ranks, from ",
      figure("/report/traffic/ranks", "count"), " ranks. ", single ? "A row and a column for each rank." :
      `Too many to show one by one: a row and a column for each ${made.unit === "host" ? "host" : "group of " + made.unit}; traffic within it is on the diagonal.`,
      " A broadcast counts once for each receiver. Largest cell: ", figure("/report/traffic/largest_bytes", "size"), "."),
    make("div", {class: "beside"}, make("div", {}, ...heatView(made)), largest));
}

function fabric() {
  const made = report.fabric;
  section("fabric", "Use of the fabric", note(`Use of a link: its bytes at the rate that it achieves, as a share of the predicted time. Policy: ${report.policy}.`),
    table("By kind of link", [{name: "kind"}, {name: "links"}, {name: "that carry something"}, {name: "mean use"}, {name: "most"}],
      made.classes.map((each, i) => [each.class, ...[["links", "count"], ["used", "count"], ["mean_use", "share"], ["most_use", "share"]]
        .map(([field, kind]) => figure(`/report/fabric/classes/${i}/${field}`, kind))])),
    note(made.gpus_drawn ? "Per host a column for each GPU: NVLink (the busier way) on top, then NIC out, NIC in."
                         : `${made.gpus} GPUs are too many to draw: per host the busiest NVLink on top, the busiest NIC below.`),
    machineDrawing(made),
    make("details", {}, make("summary", {}, `The ${made.links.length} busiest links`),
      table("Busiest links", [{name: "link"}, {name: "kind", short: true}, {name: "bytes"}, {name: "use"}],
        made.links.map((each, i) => [each.link, each.class, figure(`/report/fabric/links/${i}/bytes`, "size"), figure(`/report/fabric/links/${i}/use`, "share")]))));
}

function path() {
  const fields = [["begin_seconds", "time"], ["end_seconds", "time"], ["operations", "count"], ["bytes", "size"]];
  section("path", "Critical path", note("Operations that follow each other without a gap, like ones together; the longest parts, in the order of time."),
    table("Longest parts", [{name: "what"}, {name: "from"}, {name: "to"}, {name: "operations"}, {name: "bytes"}, {name: "mostly into", short: true}],
      report.path.map((each, i) => [each.what, ...fields.map(([field, kind]) => figure(`/report/path/${i}/${field}`, kind)), each.mostly])),
    ...(report.path.length > 0 ? pathChart(report.path, report.seconds) : []));
}

function changes() {
  if (explanation === null) {
    section("changes", "Single changes", note("Not asked for: ", make("code", {}, "isthmus explain SCENARIO --report FILE.html"),
      " simulates what one more stream, a rail down, another placement and others would do, and adds them here."));
    return;
  }
  const row = (each, i) => [each.change,
    ...(each.refused === undefined ? [figure(`/changes/${i}/change_seconds`, "change", "explanation"), figure(`/changes/${i}/seconds`, "time", "explanation")] : ["-", "-"]),
    each.refused === undefined ? (each.set.length > 0 ? each.set.map(set => "--set " + set).join(" ") : "--policy " + each.policy) : "refused: " + each.refused];
  section("changes", "Single changes", note(`Of ${explanation.policy}, each simulated: what the time would be with one thing other than it is.`),
    table("Single changes, fastest first", [{name: "change"}, {name: "gain or loss"}, {name: "time"}, {name: "with", words: true}], explanation.changes.map(row)),
    changesChart(explanation.changes),
    table("What the constants of the calibration cost, each alone", [{name: "constant"}, {name: "time without"}],
      explanation.constants.map((each, i) => [each.constant.replace(/_/g, " "), figure(`/constants/${i}/seconds_without`, "time", "explanation")])));
}

function assumptions() {
  const settings = Object.entries(report.settings).map(([name, value]) =>
    [name.replace(/_/g, " ").replace("gpus", "GPUs"), figure("/report/settings/" + name, typeof value === "number" ? (name.endsWith("bytes") ? "size" : "count") : "words")]);
  section("assumptions", "What this rests on", figures(settings),
    ...(report.assumed.length > 0 ? [make("h3", {}, "Assumed where the file says nothing"), make("ul", {}, ...report.assumed.map(text => make("li", {}, text)))] : []),
    table(`Calibration ${report.calibration}: every constant, its interval and where it is from`,
      [{name: "constant"}, {name: "value"}, {name: "low"}, {name: "high"}, {name: "provenance", short: true}, {name: "source", words: true}],
      report.constants.map((each, i) => [each.constant.replace(/_/g, " "),
        ...["value", "low", "high"].map(field => figure(`/report/constants/${i}/${field}`, {"s": "time", "B/s": "rate"}[each.unit] || "ratio")),
        each.provenance, each.source])),
    note("Not in the time: set-up of communicators, congestion control and packet loss, switches that multicast, packing where a plan has no steps for it."));
}

for (const part of [summary, policies, terms, timeline, traffic, fabric, path, changes, assumptions]) part();
document.documentElement.dataset.ready = "yes";
