// Quantities, elements and tables. Every number that is shown goes through `figure`, which notes where in the
// JSON it stands (data-path) and how it is written (data-kind): the page's test reads both.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);
const explanation = JSON.parse(document.getElementById("explanation").textContent);

const format = {
  time(s) {
    const size = Math.abs(s);
    if (size >= 0.1 || s === 0) return s.toFixed(3) + " s";
    return size >= 1e-4 ? (s * 1e3).toFixed(3) + " ms" : (s * 1e6).toFixed(3) + " µs";
  },
  size(b) {
    if (b >= 1e9) return (b * 1e-9).toFixed(2) + " GB";
    return b >= 1e6 ? (b * 1e-6).toFixed(2) + " MB" : b + " B";
  },
  share(x) { return (100 * x).toFixed(1) + " %"; },
  count(n) { return String(n).replace(/\B(?=(\d{3})+$)/g, " "); },
  change(s) { return (s > 0 ? "+" : "") + format.time(s); },
  ratio(x) { return String(Number(x.toPrecision(6))); },
  rate(x) { return x === null ? "unlimited" : (x * 1e-9).toFixed(2) + " GB/s"; },
  words(text) { return String(text); }
};

function at(root, path) {
  return path.split("/").slice(1).reduce((value, key) => value[key], root);
}

function make(tag, attributes, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...content);
  return element;
}

/// A number of the document: "/policies/0/seconds". With `of`: "explanation" for explain's document.
function figure(path, kind, of) {
  const value = at(of === "explanation" ? explanation : page, path);
  return make("span", {"data-path": path, "data-kind": kind, "data-of": of || "data"},
              value === undefined ? "-" : format[kind](value));
}

/// `columns`: [{name, words}]; each row an array of strings or elements, the first its heading.
function table(caption, columns, rows, best) {
  const head = make("tr", {}, ...columns.map(column =>
    make("th", {scope: "col", class: column.words ? "words" : column.short || column === columns[0] ? "short" : ""}, column.name)));
  const body = rows.map((row, r) => make("tr", r === best ? {class: "best"} : {}, ...row.map((cell, c) =>
    make(c === 0 ? "th" : "td",
         {...(c === 0 ? {scope: "row"} : {}), class: columns[c].words ? "words" : columns[c].short || c === 0 ? "short" : ""},
         cell))));
  return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption},
              make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body)));
}

function section(id, title, ...content) {
  const heading = make("h2", {id: id + "-title"}, title);
  const made = make("section", {id, "aria-labelledby": id + "-title", tabindex: "-1"}, heading, ...content);
  document.getElementById("main").append(made);
  document.getElementById("contents").append(make("li", {}, make("a", {href: "#" + id}, title)));
  return made;
}

const note = (...content) => make("p", {class: "note"}, ...content);

function figures(list) {
  return make("dl", {class: "figures"}, ...list.map(([name, value, words]) =>
    make("div", {}, make("dt", {}, name), make("dd", words ? {class: "words"} : {}, value))));
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

const dark = window.matchMedia("(prefers-color-scheme: dark)");

/// Colour of a share of a rate: 0 is the empty colour.
function heat(share) {
  if (!(share > 0)) return colour("empty");
  const t = Math.min(1, share);
  return dark.matches ? d3.interpolateInferno(0.2 + 0.75 * t) : d3.interpolateYlOrRd(0.12 + 0.88 * t);
}

/// What the colours of `heat` mean.
function ramp(low, high) {
  const bar = make("i", {class: "ramp"});
  const paint = () => { bar.style.background = `linear-gradient(to right,${d3.range(0, 1.01, 0.1).map(t => heat(t || 0.001)).join(",")})`; };
  paint();
  dark.addEventListener("change", paint);
  return make("p", {class: "key"}, make("span", {}, low, bar, high));
}

/// A chart: draw(element, width) runs when it has a width, and again when that or the colour scheme changes.
function chart(draw) {
  const element = make("div", {class: "chart"});
  let width = -1;
  const again = () => { width = element.clientWidth; if (width > 0) draw(element, width); };
  new ResizeObserver(() => { if (element.clientWidth !== width) again(); }).observe(element);
  dark.addEventListener("change", again);
  return element;
}
