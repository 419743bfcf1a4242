"""Reports opened in headless Chromium, in both themes: no message on the console, nothing asked of a network, no text
beyond the edge of its figure.  browser_test.py TEST_TELEMETRY [VITRAIL]; exit code 77 where there is no Chromium. VITRAIL_SHOTS names a
folder that gets every page as PNG in both themes, to be looked at."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MISSING = 77
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-default-apps", "--enable-logging=stderr", "--v=0",
         "--window-size=1200,2000", "--virtual-time-budget=2000"]
SHOTS = os.environ.get("VITRAIL_SHOTS")
THEMES = {"light": "1", "dark": "0"}
# Appended to a copy of the page: lists texts of figures that reach beyond their drawing.
PROBE = """<script>document.addEventListener('DOMContentLoaded',function(){var out=[];
document.querySelectorAll('svg.plot').forEach(function(svg){var box=svg.getBoundingClientRect();
svg.querySelectorAll('text').forEach(function(t){var b=t.getBoundingClientRect();
if(b.left<box.left-1||b.right>box.right+1||b.top<box.top-1||b.bottom>box.bottom+1)out.push(t.textContent)})});
var p=document.createElement('p');p.id='clipped';p.textContent=JSON.stringify(out);document.body.appendChild(p)})</script>"""


def asked_by_page(log):
    """Addresses that the page asked for; the browser's own errands have no origin."""
    text = log.read_text()
    try:
        events = json.loads(text)["events"]
    except ValueError:  # the browser ended before it closed the list
        events = json.loads(text.rstrip().rstrip(",") + "]}")["events"]
    return {e["params"]["url"] for e in events
            if e.get("params", {}).get("initiator", "not an origin") != "not an origin"
            and not e["params"].get("url", "file:").startswith(("file:", "data:", "about:"))}


def look_at(page, theme, folder):
    """(console messages, addresses asked for, clipped texts) of a page."""
    net = folder / "net.json"
    done = subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={net}",
                           f"--blink-settings=preferredColorScheme={THEMES[theme]}", "--dump-dom", page.as_uri()],
                          capture_output=True, text=True, timeout=120)
    messages = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    asked = asked_by_page(net)
    clipped = re.search(r'<p id="clipped">(.*?)</p>', done.stdout, re.S)
    if done.returncode != 0 or "</html>" not in done.stdout:
        sys.exit(f"{page.name}: Chromium ended with {done.returncode}: {done.stderr[-400:]}")
    return messages, asked, json.loads(html.unescape(clipped.group(1))) if clipped else []


def take_shot(page, theme, folder):
    """Writes the page as it looks, SHOTS/NAME-THEME.png."""
    name = f"{page.parent.name}-{page.stem}" if page.parent != folder else page.stem
    subprocess.run([CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", f"--blink-settings=preferredColorScheme={THEMES[theme]}",
                    "--window-size=1200,5200", f"--screenshot={Path(SHOTS).resolve() / f'{name}-{theme}.png'}", page.as_uri()], check=True, capture_output=True, timeout=120)


def expect_quiet(page, folder):
    probed = folder / f"probed-{page.parent.name}-{page.name}"
    text = page.read_text()
    probed.write_text(text.replace("</body>", PROBE + "</body>"))
    for theme in THEMES:
        if SHOTS:
            take_shot(page, theme, folder)
        messages, asked, clipped = look_at(probed, theme, folder)
        if messages or asked or clipped:
            sys.exit(f"{page}, {theme}: console {messages}, network {sorted(asked)}, clipped {clipped}")
    print(f"{page.relative_to(folder)}: nothing on the console, nothing from a network, no text clipped, in both themes")


def expect_noticed(folder):
    """A page with every fault shows that they would be seen."""
    page = folder / "bad.html"
    page.write_text('<!DOCTYPE html><html><body><svg class="plot" width="20" height="20"><text y="10">far beyond the edge'
                    '</text></svg><script>console.log("heard")</script><img src="http://127.0.0.1:9/x.png">' + PROBE +
                    "</body></html>")
    messages, asked, clipped = look_at(page, "light", folder)
    if not any("heard" in line for line in messages) or not any("127.0.0.1:9" in url for url in asked) or not clipped:
        sys.exit(f"faults were not noticed: {messages}, {asked}, {clipped}")


def profile_page(folder):
    page = folder / "profile.html"
    subprocess.run([sys.argv[2], "profile", "--weights", "rule", "-m", "vit_tiny_patch16_224", "--image", "32", "--seconds", "0",
                    "--sweep", "threads=1,2", "--html", page], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return page


def study_page(folder):
    """A scaling study with all kinds of figures that a host of its own can make."""
    model = ["image=16", "patch=8", "width=32", "depth=2", "heads=2", "mlp=64", "classes=4"]
    subprocess.run([sys.argv[2], "scale", "-m", "vit_tiny_patch16_224", "--ranks", "1,2", "--batches", "4,8", "--strong", "global",
                    "--weak", "--repeat", "2", "--updates", "2", "--warmup", "1", "--messages", "0.01,0.1", "--out", folder / "study",
                    *(f"--set=model.{pair}" for pair in model)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / "study/report.html"


def main():
    if CHROMIUM is None:
        print("skipped: no chromium at hand")
        return MISSING
    with tempfile.TemporaryDirectory(prefix="vitrail-pages-") as name:
        folder = Path(name)
        expect_noticed(folder)
        subprocess.run([sys.argv[1], "--gtest_filter=Plot.EveryFigure*:Report.Sample*"], check=True,
                       stdout=subprocess.DEVNULL,
                       env={**os.environ, "PLOT_FOLDER": name, "REPORT_FILE": str(folder / "report.html")})
        pages = [folder / "page.html", folder / "report.html"]
        if len(sys.argv) > 2:
            pages += [profile_page(folder), study_page(folder)]
        for page in pages:
            expect_quiet(page, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
