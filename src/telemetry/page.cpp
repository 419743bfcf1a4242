#include "telemetry/page.h"

#include "base/error.h"

namespace vitrail {

namespace {
// The document head; its content security policy keeps the browser from loading anything, whatever a name may
// contain.
constexpr const char* kHead = R"(<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'">
)";

constexpr const char* kStyle = R"(
:root{--page:#f6f7f9;--card:#fff;--ink:#1b1f27;--soft:#5d6675;--line:#e1e5eb;--grid:#edf0f4;
--yes:#0072b2;--no:#c45600}
@media (prefers-color-scheme:dark){:root{--page:#12151b;--card:#1a1f27;--ink:#e8ebf0;--soft:#9aa5b5;
--line:#2c333e;--grid:#252b35;--yes:#5aa9ff;--no:#f08a3c}}
*{box-sizing:border-box}
body{margin:0 auto;padding:28px 20px 48px;max-width:1180px;background:var(--page);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{margin:0;font-size:26px;line-height:1.25;overflow-wrap:anywhere}h2{margin:0 0 14px;font-size:18px}
h3{margin:20px 0 10px;font-size:15px}
.verdict{margin:6px 0 0;font-size:17px;color:var(--soft)}
nav{margin:14px 0 0;display:flex;flex-wrap:wrap;gap:4px 16px;font-size:14px}a{color:var(--yes)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:12px;margin-top:18px}
.tile,section{background:var(--card);border:1px solid var(--line);border-radius:10px}
.tile{padding:12px 16px}.tile b{display:block;font-size:22px;font-weight:600;line-height:1.3}
.tile span,small,.note{color:var(--soft);font-size:13px}
section{margin-top:18px;padding:20px}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));gap:22px}
figure{margin:0;min-width:0}section>figure{margin-bottom:16px}.chart{position:relative}figcaption{font-weight:600;font-size:14px}
.chart svg{display:block;width:100%;height:auto}
.wide{grid-column:1/-1;max-width:1000px}.key{display:inline-block!important;width:22px!important;height:10px!important;margin-right:6px;vertical-align:middle}
.legend{display:flex;flex-wrap:wrap;gap:2px 14px;font-size:13px;color:var(--soft)}
.tip{position:absolute;top:34px;pointer-events:none;background:var(--card);border:1px solid var(--line);
border-radius:6px;padding:4px 8px;font-size:12px;white-space:pre;box-shadow:0 2px 8px #0003}
.beside{display:flex;flex-wrap:wrap;gap:8px 36px}.beside>div{min-width:0}.beside>div+div{flex:1 1 300px}.beside h3{margin-top:0}
.scroll{overflow:auto;max-height:560px}
table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}
th,td{padding:5px 14px 5px 0;text-align:left;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;position:sticky;top:0;background:var(--card)}.n{text-align:right;white-space:nowrap}
td:last-child,th:last-child{padding-right:4px}
th button{all:unset;cursor:pointer}th button:focus-visible{outline:2px solid var(--yes)}
th[aria-sort=ascending] button::after{content:" ▲"}th[aria-sort=descending] button::after{content:" ▼"}
.images{display:grid;grid-template-columns:repeat(auto-fill,minmax(132px,1fr));gap:14px}
.images figure{font-size:13px;overflow-wrap:anywhere}.images img{width:132px;height:132px;object-fit:contain;
background:var(--grid);border-radius:6px;display:block;margin-bottom:4px}.images img.small{image-rendering:pixelated}
.yes{color:var(--yes)}.no{color:var(--no)}
pre{margin:10px 0 0;padding:14px;overflow:auto;background:var(--page);border-radius:6px;font-size:13px}
summary{cursor:pointer;font-weight:600}footer{margin-top:24px;color:var(--soft);font-size:13px}
@media print{body{background:none;max-width:none}.scroll{max-height:none}section{break-inside:avoid}}
)";

// The script shows values under the pointer, and sorts tables by a click on a heading.
constexpr const char* kScript = R"(
document.querySelectorAll('.chart').forEach(function(figure){
  var svg=figure.querySelector('svg.plot:not(.key)'),cursor=svg.querySelector('.cursor');
  var lines=[].map.call(svg.querySelectorAll('path[data-values]'),function(path){
    return {name:path.dataset.name,points:path.dataset.values.split(';').filter(Boolean).map(function(p){
      return p.split(',').map(Number)})}}).filter(function(line){return line.points.length});
  if(!lines.length||!cursor)return;
  var tip=document.createElement('div');tip.className='tip';tip.hidden=true;figure.appendChild(tip);
  function nearest(points,x){return points.reduce(function(a,b){
    return Math.abs(b[0]-x)<Math.abs(a[0]-x)?b:a})}
  svg.addEventListener('pointermove',function(event){
    var box=svg.getBoundingClientRect(),scale=svg.viewBox.baseVal.width/box.width;
    var hits=lines.map(function(line){return nearest(line.points,(event.clientX-box.left)*scale)});
    var at=hits.reduce(function(a,b){
      var x=(event.clientX-box.left)*scale;return Math.abs(b[0]-x)<Math.abs(a[0]-x)?b:a});
    tip.textContent=[].pop.call(figure.querySelectorAll('.axis')).lastElementChild.textContent+' '+at[1].toLocaleString('en')+
      lines.map(function(line,i){return Math.abs(hits[i][0]-at[0])<12?'\n'+line.name+'  '+hits[i][2]:''}).join('');
    cursor.setAttribute('x1',at[0]);cursor.setAttribute('x2',at[0]);cursor.style.visibility='visible';
    tip.hidden=false;
    var left=at[0]/scale+10;
    tip.style.left=(left+tip.offsetWidth>box.width?left-tip.offsetWidth-20:left)+'px'});
  svg.addEventListener('pointerleave',function(){tip.hidden=true;cursor.style.visibility='hidden'})});
document.querySelectorAll('table.sortable').forEach(function(table){
  var heads=[].slice.call(table.querySelectorAll('th')),body=table.tBodies[0];
  function key(row,i){var cell=row.cells[i];return 'key' in cell.dataset?Number(cell.dataset.key):cell.textContent}
  heads.forEach(function(head,i){head.querySelector('button').addEventListener('click',function(){
    var down=head.getAttribute('aria-sort')==='ascending';
    heads.forEach(function(h){h.removeAttribute('aria-sort')});
    head.setAttribute('aria-sort',down?'descending':'ascending');
    [].slice.call(body.rows).sort(function(a,b){var x=key(a,i),y=key(b,i);
      return (x<y?-1:x>y?1:0)*(down?-1:1)}).forEach(function(row){body.appendChild(row)})})})});
)";
}  // namespace

void Page::verdict(const std::string& text) {
  if (!text.empty()) head_ += "<p class=\"verdict\">" + html_escape(text) + "</p>\n";
}

void Page::tiles(const PagePairs& figures) {
  if (figures.empty()) return;
  head_ += "<div class=\"tiles\">";
  for (const auto& [label, value] : figures)
    head_ +=
        "<div class=\"tile\"><b>" + html_escape(value) + "</b><span>" + html_escape(label) + "</span></div>";
  head_ += "</div>\n";
}

void Page::section(std::string id, std::string title) {
  sections_.push_back({std::move(id), std::move(title), ""});
}

void Page::html(const std::string& markup) {
  VT_CHECK(!sections_.empty(), "'%s' has content before its first section", title_.c_str());
  sections_.back().body += markup;
}

void Page::heading(const std::string& text) {
  html("<h3>" + html_escape(text) + "</h3>\n");
}

void Page::paragraph(const std::string& text) {
  html("<p>" + html_escape(text) + "</p>\n");
}

void Page::note(const std::string& text) {
  if (text.empty()) return;
  html("<p class=\"note\">" + html_escape(text) + "</p>\n");
}

void Page::table(const HtmlTable& table) {
  if (!table.rows.empty()) html(html_table(table));
}

void Page::pairs(const PagePairs& list) {
  HtmlTable facts{{{"what"}, {"found"}}, {}};
  for (const auto& [name, value] : list) facts.rows.push_back({{name, ""}, {value, ""}});
  table(facts);
}

void Page::figure(const Figure& figure) {
  html(to_html(figure));
}

void Page::figures(const std::vector<Figure>& list) {
  if (list.empty()) return;
  html("<div class=\"charts\">\n");
  for (const Figure& one : list) figure(one);
  html("</div>\n");
}

std::string Page::text(const std::string& footer) const {
  const std::string name = html_escape(title_);
  std::string contents, body;
  for (const Section& section : sections_) {
    if (section.body.empty()) continue;
    const std::string title = html_escape(section.title), id = html_escape(section.id);
    contents += "<a href=\"#" + id + "\">" + title + "</a>\n";
    body += "<section id=\"" + id + "\"><h2>" + title + "</h2>\n" + section.body + "</section>\n";
  }
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n" + std::string(kHead) + "<title>" + name +
         "</title>\n<style>" + kStyle + plot_style() + "</style>\n</head>\n<body>\n<header><h1>" + name +
         "</h1>\n" + head_ + "<nav>" + contents + "</nav></header>\n<main>\n" + body + "</main>\n<footer>" +
         html_escape(footer) + "</footer>\n<script>" + kScript + "</script>\n</body>\n</html>\n";
}

}  // namespace vitrail
