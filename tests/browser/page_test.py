#!/usr/bin/python3
"""Looks at pages of `isthmus simulate --report` in headless Chromium, as a reader does.

usage: page_test.py PAGE.html JSON [--explanation JSON] [--screenshots FOLDER]

JSON is what the command printed with --json. Judged: nothing on the console; no request for anything but the page;
every number that is shown equals the JSON's, written by this program's own rules; tables have a row for each item;
no sideways overflow at 375 px; dark and light differ and both have contrast; zoom by buttons, keys and wheel; the
first stop of the keyboard skips to the numbers, every chart is a stop and has a name.
Exit status 0: all of it holds; 1: something does not, one line each; 2: no browser here.
"""
import argparse
import json
import pathlib
import sys

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.support.ui import WebDriverWait
except ImportError as error:
    print(f"python3-selenium is missing: {error}")
    sys.exit(2)

faults = []


def claim(holds, what):
    if not holds:
        faults.append(what)


def time_text(seconds):
    size = abs(seconds)
    if size >= 0.1 or size == 0:
        return f"{seconds:.3f} s"
    return f"{seconds * 1e3:.3f} ms" if size >= 1e-4 else f"{seconds * 1e6:.3f} µs"


def size_text(size):
    if size >= 1e9:
        return f"{size * 1e-9:.2f} GB"
    return f"{size * 1e-6:.2f} MB" if size >= 1e6 else f"{size} B"


def numbers_alike(shown, value, kind):
    """Whether `shown` is `value`, within half of its last digit."""
    if value is None:
        return shown == "unlimited"
    if kind == "words":
        return shown == str(value)
    if kind == "count":
        return shown.replace("\u202f", "").replace("\u2009", "").replace(" ", "") == str(value)
    if kind == "ratio":
        return abs(float(shown) - value) <= 1e-5 * abs(value)
    if kind == "rate":
        return abs(float(shown.removesuffix(" GB/s")) - value * 1e-9) <= 0.00501
    if kind == "share":
        return abs(float(shown.removesuffix(" %")) - 100 * value) <= 0.0501
    units = {"s": 1, "ms": 1e-3, "µs": 1e-6, "GB": 1e9, "MB": 1e6, "B": 1}
    number, unit = shown.replace("−", "-").split(" ")
    digits = len(number.partition(".")[2])
    right_unit = (size_text(value) if kind == "size" else time_text(value)).split(" ")[1] == unit
    return right_unit and abs(float(number) * units[unit] - value) <= 0.501 * 10**-digits * units[unit]


def at(document, path):
    for key in path.split("/")[1:]:
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def judge_numbers(driver, documents):
    shown = driver.execute_script(
        "return [...document.querySelectorAll('[data-path]')].map(e =>"
        " [e.dataset.of, e.dataset.path, e.dataset.kind, e.textContent])")
    claim(len(shown) > 60, f"the page shows only {len(shown)} numbers")
    for source, path, kind, text in shown:
        try:
            value = at(documents[source], path)
            alike = numbers_alike(text, value, kind)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            value, alike = repr(error), False
        claim(alike, f"{source}{path}: the page shows {text!r}, the JSON has {value!r}")
    data = documents["data"]
    rows = driver.execute_script("return document.querySelectorAll('#policies table')[0].tBodies[0].rows.length")
    claim(rows == sum("seconds" in row for row in data["policies"]), f"policies: {rows} rows")
    embedded = driver.execute_script("return document.getElementById('data').textContent")
    claim(json.loads(embedded) == data, "the page's data are not the JSON")
    return len(shown)


def judge_sums(data):
    """What the page's own parts must add up to."""
    report = data["report"]
    claim(sum(cell[2] for cell in report["traffic"]["cells"]) == report["traffic"]["bytes"], "cells of the heat map")
    timeline = report["timeline"]
    claim(len(timeline["events"]) + timeline["dropped_operations"] == timeline["operations"], "operations kept")
    row = next(row for row in data["policies"] if row.get("policy") == report["policy"])
    claim(abs(sum(term["seconds"] for term in row["terms"]) - row["seconds"]) < 1e-9, "terms")
    claim(report["seconds"] == row["seconds"], "the timeline's time is not the policy's")


def size_window(driver, width, height, scheme):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})
    driver.execute_async_script("const done = arguments[0]; setTimeout(done, 250)")


def luminance(colour):
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1:-1].split(",")[:3]]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055)**2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def judge_looks(driver, width, scheme):
    where = f"at {width} px, {scheme}"
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    claim(wide <= width, f"{where}: the page is {wide} px wide")
    pairs = driver.execute_script("""
      const of = (element, property) => getComputedStyle(element)[property];
      const panel = of(document.querySelector('section'), 'backgroundColor');
      return [['text', of(document.body, 'color'), panel], ['notes', of(document.querySelector('.note'), 'color'), panel],
              ['links', of(document.querySelector('nav a'), 'color'), of(document.body, 'backgroundColor')]]""")
    for name, ink, paper in pairs:
        low, high = sorted((luminance(ink), luminance(paper)))
        claim((high + 0.05) / (low + 0.05) >= 4.5, f"{where}: {name}: contrast of {ink} on {paper}")
    small = driver.execute_script(
        "return [...document.querySelectorAll('button, select')].filter(e => e.offsetHeight < 32).length")
    claim(small == 0, f"{where}: {small} controls are less than 32 px high")
    return pairs[0][2]


def judge_keyboard(driver):
    driver.execute_script("window.scrollTo(0, 0); document.activeElement.blur()")
    body = driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    claim(driver.switch_to.active_element.get_attribute("class") == "skip", "the first stop is not the skip link")
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    claim(driver.execute_script("return location.hash") == "#summary", "the skip link leads elsewhere")
    stops = []
    for _ in range(80):
        driver.switch_to.active_element.send_keys(Keys.TAB)
        stops.append(driver.execute_script("const e = document.activeElement; return e.id + ' ' + e.className"))
        if driver.execute_script("return document.activeElement === document.body"):
            break
    claim(sum("view" in stop for stop in stops) >= 2, f"timeline and heat map are no stops: {stops}")
    unnamed = driver.execute_script("""
      return [...document.querySelectorAll('svg, [role=application], [role=region], button, section, nav')].filter(e =>
        !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')).map(e => e.outerHTML.slice(0, 80))""")
    claim(not unnamed, f"without a name: {unnamed}")


def pixels(driver, view):
    return driver.execute_script("return arguments[0].querySelector('canvas').toDataURL()", view)


def judge_zoom(driver, name):
    view = driver.find_element(By.CSS_SELECTOR, f"#{name} [role=application]")
    zoom = lambda: float(view.get_attribute("data-zoom"))
    driver.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", view)
    whole = pixels(driver, view)
    driver.find_element(By.CSS_SELECTOR, f"#{name} [aria-label='Zoom in']").click()
    claim(zoom() == 2, f"{name}: the button zooms to {zoom()}")
    claim(pixels(driver, view) != whole, f"{name}: the picture stays the same")
    view.send_keys("+", Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    claim(zoom() == 4, f"{name}: the key zooms to {zoom()}")
    told = driver.find_element(By.ID, f"{name}-readout").text
    claim(told and "use the" not in told, f"{name}: the keys tell nothing: {told!r}")
    driver.execute_script("""
      const box = arguments[0].getBoundingClientRect();
      arguments[0].dispatchEvent(new WheelEvent('wheel', {deltaY: -400, ctrlKey: true, bubbles: true, cancelable: true,
        clientX: box.left + box.width / 2, clientY: box.top + box.height / 2}))""", view)
    claim(zoom() > 4, f"{name}: the wheel zooms to {zoom()}")
    view.send_keys("0")
    claim(zoom() == 1, f"{name}: reset leaves {zoom()}")


def judge_domain_choice(driver, data):
    """A domain's rows show its operations; zoomed in, time runs over less."""
    view = driver.find_element(By.CSS_SELECTOR, "#timeline [role=application]")
    whole = pixels(driver, view)
    driver.execute_script("""
      const choice = document.getElementById('timeline-domain');
      choice.value = choice.options[choice.options.length - 1].value;
      choice.dispatchEvent(new Event('change'))""")
    claim(pixels(driver, view) != whole, "timeline: the choice of a domain changes nothing")
    view.send_keys("+", "+", "+")
    span = float(view.get_attribute("data-to")) - float(view.get_attribute("data-from"))
    claim(abs(span * 8e-9 / data["report"]["seconds"] - 1) < 1e-6, f"timeline: eightfold shows {span} ns")
    view.send_keys("0")


def judge_wheel_place(driver):
    """What stands below the pointer stays there when the wheel zooms."""
    view = driver.find_element(By.CSS_SELECTOR, "#timeline [role=application]")
    before, after = driver.execute_script("""
      const view = arguments[0], box = view.getBoundingClientRect(), gutter = Number(view.dataset.gutter);
      const clientX = box.left + view.clientLeft + gutter + 0.75 * (view.clientWidth - gutter);
      const time = () => Number(view.dataset.from) + 0.75 * (view.dataset.to - view.dataset.from);
      const before = time();
      view.dispatchEvent(new WheelEvent('wheel', {deltaY: -300, ctrlKey: true, bubbles: true, cancelable: true, clientX,
                                                  clientY: box.top + 20}));
      const share = (before - view.dataset.from) / (view.dataset.to - view.dataset.from);
      return [0.75, share]""", view)
    claim(abs(before - after) < 0.01, f"timeline: the wheel moves the time below the pointer to {after} of the width")
    view.send_keys("0")


def judge_traffic_cell(driver, data):
    """The cell under the cursor is told with the JSON's bytes."""
    view = driver.find_element(By.CSS_SELECTOR, "#traffic [role=application]")
    traffic = data["report"]["traffic"]
    view.send_keys(Keys.ARROW_LEFT, *[Keys.ARROW_UP] * 3)
    across = min(5, len(traffic["names"]) - 1)
    driver.execute_script("""
      const n = arguments[1], box = arguments[0].querySelector('canvas').getBoundingClientRect();
      arguments[0].dispatchEvent(new PointerEvent('pointermove', {bubbles: true,
        clientX: box.left + box.width * (arguments[2] + 0.5) / n, clientY: box.top + box.height * 0.5 / n}))""",
                          view, len(traffic["names"]), across)
    expected = next((cell[2] for cell in traffic["cells"] if cell[:2] == [0, across]), 0)
    told = driver.find_element(By.ID, "traffic-readout").text
    names = f"{traffic['names'][0]} to {traffic['names'][across]}: {size_text(expected)}"
    claim(told == names, f"heat map tells {told!r}, not {names!r}")


def judge_silence(driver, page):
    for entry in driver.get_log("browser"):
        faults.append(f"console: {entry['message']}")
    for entry in driver.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            claim(url.split("#")[0] == page or url.startswith("data:"), f"a request: {url}")


def start():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--host-resolver-rules=MAP * ~NOTFOUND", "--disable-background-networking"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("chromedriver"), options=options)
    driver.set_page_load_timeout(60)
    driver.set_script_timeout(60)
    return driver


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("json", type=pathlib.Path)
    parser.add_argument("--explanation", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path)
    arguments = parser.parse_args()
    documents = {"data": json.loads(arguments.json.read_text())}
    if arguments.explanation:
        documents["explanation"] = json.loads(arguments.explanation.read_text())
    try:
        driver = start()
    except WebDriverException as error:
        print(f"no headless Chromium: {error.msg}")
        return 2
    page = arguments.page.resolve().as_uri()
    try:
        driver.get(page)
        WebDriverWait(driver, 60).until(
            lambda d: d.execute_script("return document.documentElement.dataset.ready") == "yes")
        judge_sums(documents["data"])
        count = judge_numbers(driver, documents)
        papers = set()
        for width, height in ((1280, 900), (375, 812)):
            for scheme in ("light", "dark"):
                size_window(driver, width, height, scheme)
                papers.add(judge_looks(driver, width, scheme))
                if arguments.screenshots:
                    whole = driver.execute_script("return document.documentElement.scrollHeight")
                    size_window(driver, width, min(whole, 12000), scheme)
                    driver.save_screenshot(str(arguments.screenshots / f"{arguments.page.stem}-{width}-{scheme}.png"))
                    size_window(driver, width, height, scheme)
        claim(len(papers) == 2, "dark and light look alike")
        size_window(driver, 1280, 900, "light")
        judge_keyboard(driver)
        judge_zoom(driver, "timeline")
        judge_zoom(driver, "traffic")
        judge_wheel_place(driver)
        judge_domain_choice(driver, documents["data"])
        judge_traffic_cell(driver, documents["data"])
        judge_silence(driver, page)
    finally:
        driver.quit()
    for fault in faults[:40]:
        print(f"{arguments.page.name}: {fault}")
    print(f"{arguments.page.name}: {count} numbers, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
