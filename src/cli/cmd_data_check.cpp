#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/data_work.h"
#include "telemetry/format.h"

namespace vitrail::cli {

namespace {

void run_data_check(const Options& options, Console& console) {
  const std::unique_ptr<Dataset> data = open_chosen_data(options);
  ThreadPool pool(data_threads(options));
  WorkProgress progress(console, "check", data->size());
  int64_t bad = 0;
  const auto report = [&](const std::string& name, const std::string& problem) {
    ++bad;
    console.print_json({{"sample", name}, {"problem", problem}});
    console.print(shown(name) + "\t" + problem + "\n");
  };
  in_order<char>(
      data->size(), pool, progress.hooks(),
      [&](int64_t index) {
        data->load(index, 0);
        return '\0';
      },
      [&](int64_t index, char, const std::optional<Error>& error) {
        const std::string name = data->sample_name(index);
        if (error)
          report(name, problem_text(*error, name));
        else if (shown(name) != name)  // it would break a list with one name a line
          report(name, "the name holds a line end, another control character or bytes that are not UTF-8");
      });
  progress.finish();
  console.print_json({{"data", options.positional(0)},
                      {"checked", data->size()},
                      {"bad", bad},
                      {"classes", data->classes().size()}});
  const std::string checked = format_count(data->size(), "sample");
  if (bad > 0)
    throw Error(ErrorKind::kCheck,
                strf("%s of %s cannot be used", format_integer(bad).c_str(), checked.c_str()),
                "fetch or remove them; training can also pass them over (loader.on_error=skip)");
  console.print(strf("%s of %zu classes, all can be read\n", checked.c_str(), data->classes().size()));
}

}  // namespace

Command data_check_command() {
  return {
      {.name = "data check",
       .summary = "decode every image of a dataset and list those that cannot be used",
       .examples = {{"data check folder:photos", "one line a broken image; exit code 2 when there is any"},
                    {"data check 'tar:train-{000..146}.tar' --json",
                     R"(lines {"sample", "problem"}, then {"data", "checked", "bad", "classes"})"},
                    {"data check cifar10:data --part val", "the test files only"}},
       .options = {part_option()},
       .positionals = {data_positional()}},
      run_data_check};
}

}  // namespace vitrail::cli
