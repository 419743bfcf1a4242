#include "measure/study/study_report.h"

#include "base/error.h"
#include "base/file.h"
#include "base/json_text.h"
#include "base/values.h"
#include "measure/study/study_figures.h"
#include "telemetry/format.h"
#include "telemetry/page.h"

namespace vitrail {

namespace {

HtmlTable rows_of(const StudyTable& table) {
  HtmlTable html{.columns = table.columns, .rows = {}};
  for (const std::vector<std::string>& row : table.rows) {
    html.rows.emplace_back();
    for (const std::string& text : row) html.rows.back().push_back({text, ""});
  }
  return html;
}

std::string text_of(const nlohmann::ordered_json& value) {
  if (value.is_array()) {
    std::vector<std::string> words;
    for (const auto& one : value) words.push_back(text_of(one));
    return join(words, ", ");
  }
  return value.is_string() ? value.get<std::string>() : json_text(value);
}

std::string page_of(const Study& study, const std::vector<StudyFigure>& figures) {
  Page page("Scaling study");
  if (study.advice.batch > 0) page.verdict("Recommended: " + study.advice.why);
  const auto& machine = study.header["machine"];
  page.tiles({{"processor", text_of(machine["processor"])},
              {"cores", text_of(machine["cores"])},
              {"cases", std::to_string(study.results.size())},
              {"failed", std::to_string(study.failed())}});
  page.section("figures", "Figures");
  std::vector<Figure> drawn;
  drawn.reserve(figures.size());
  for (const StudyFigure& one : figures) drawn.push_back(one.figure);
  page.figures(drawn);
  page.section("tables", "Tables");
  for (const Curve& curve : study.curves) {
    page.heading(strf("%s, %s on %s", curve.title().c_str(), curve.model.c_str(), curve.device.c_str()));
    page.table(rows_of(curve_table(curve)));
    page.note(fit_text(curve));
  }
  page.note(star_text(study));
  page.section("predicted", "Predicted against measured");
  page.table(rows_of(prediction_table(study)));
  page.note(prediction_text(study));
  for (const std::string& note : study.prediction.notes) page.note(note);
  page.section("messages", "All-reduce");
  page.table(rows_of(message_table(study)));
  page.section("failures", "Cases that failed");
  PagePairs failures, settings;
  for (const StudyPoint& p : study.points)
    if (p.failed > 0) failures.emplace_back(p.which.point(), p.error);
  page.pairs(failures);
  page.section("config", "Configuration");
  for (const auto& [key, value] : study.header["config"].items())
    if (const std::string text = text_of(value); !text.empty()) settings.emplace_back(key, text);
  page.pairs(settings);
  return page.text("Vitrail " + text_of(study.header["vitrail"]));
}

}  // namespace

void write_study(const Study& study, const std::string& folder) {
  write_file(folder + "/study.json", json_text(to_json(study), 1) + "\n");
  write_file(folder + "/study.csv", to_csv(study));
  write_file(folder + "/study.txt", to_text(study));
  const std::vector<StudyFigure> figures = figures_of(study);
  for (const StudyFigure& one : figures) write_file(folder + "/" + one.name + ".svg", to_svg(one.figure));
  write_file(folder + "/report.html", page_of(study, figures));
}

void require_no_failure(const Study& study) {
  if (study.failed() == 0) return;
  throw Error(ErrorKind::kCheck, strf("%zu of %zu cases failed", study.failed(), study.results.size()),
              "the same command with --retry runs them again");
}

}  // namespace vitrail
