// DeepSpeed's batch triple, by DeepSpeed's own rules.
#include <algorithm>

#include "train/deepspeed/keys.h"

namespace vitrail {

namespace {

long long wide(int64_t number) {
  return number;
}

std::string given_text(const BatchTriple& t) {
  std::string text;
  const auto add = [&](const char* key, int64_t value) {
    if (value > 0) text += strf("%s%s %lld", text.empty() ? "" : ", ", key, wide(value));
  };
  add("train_batch_size", t.batch);
  add("train_micro_batch_size_per_gpu", t.micro);
  add("gradient_accumulation_steps", t.accumulation);
  return text;
}

// Whole multiples of what one accumulation of all ranks takes, on both sides of the batch; the only one that
// both of the others leave.
std::string nearest_batches(const BatchTriple& given, int64_t world) {
  const int64_t unit = std::max<int64_t>(given.micro, 1) * world * std::max<int64_t>(given.accumulation, 1);
  if (given.micro > 0 && given.accumulation > 0)
    return strf("train_batch_size %lld, or another number of ranks", wide(unit));
  const int64_t below = given.batch / unit * unit;
  return (below > 0 ? strf("train_batch_size %lld or ", wide(below)) : std::string()) +
         strf("%s%lld, or another number of ranks", below > 0 ? "" : "train_batch_size ", wide(below + unit));
}

}  // namespace

BatchTriple complete_triple(const BatchTriple& given, int64_t world, const std::string& place) {
  BatchTriple t = given;
  if (t.batch == 0 && t.micro == 0)
    throw Error(
        ErrorKind::kConfig,
        strf("%s: nothing says how large a batch is, in a world of %lld data-parallel rank%s", place.c_str(),
             wide(world), world == 1 ? "" : "s"),
        "\"train_batch_size\" or \"train_micro_batch_size_per_gpu\" in the file, or train.batch in the "
        "config or by --set");
  if (t.accumulation == 0) t.accumulation = t.batch > 0 && t.micro > 0 ? t.batch / t.micro / world : 1;
  if (t.micro == 0) t.micro = t.batch / world / t.accumulation;
  if (t.batch == 0) t.batch = t.micro * t.accumulation;
  if (given.batch == 0) t.batch *= world;
  if (t.micro < 1 || t.accumulation < 1 || t.micro * t.accumulation * world != t.batch)
    throw Error(
        ErrorKind::kConfig,
        strf("%s: a batch of %lld is not micro-batch %lld x accumulation %lld x %lld data-parallel rank%s "
             "(given: %s)",
             place.c_str(), wide(t.batch), wide(t.micro), wide(t.accumulation), wide(world),
             world == 1 ? "" : "s", given_text(given).c_str()),
        nearest_batches(given, world));
  return t;
}

namespace deepspeed {

namespace {

// The limit is so large that products of three and of the ranks stay whole numbers.
constexpr Limits kImages{1, 1 << 20};

struct TripleKey {
  const char *path, *key;
  int64_t BatchTriple::*field;
};
constexpr TripleKey kTriple[] = {
    {"train_batch_size", "train.batch", &BatchTriple::batch},
    {"train_micro_batch_size_per_gpu", "train.micro_batch", &BatchTriple::micro},
    {"gradient_accumulation_steps", "train.accumulation", &BatchTriple::accumulation}};

// What the command line says holds; an "auto" is the config's number, or open where it has none.
BatchTriple given_triple(Reader& reader) {
  BatchTriple given;
  for (const TripleKey& row : kTriple) {
    const auto own = reader.value_of(row.key).get<int64_t>();
    const bool commanded = own > 0 && reader.given_by(row.key) == GivenBy::kCommand;
    const bool open = reader.is_auto(row.path);
    const int64_t said = open ? 0 : reader.integer(row.path, "", kImages).value_or(0);
    given.*row.field = commanded || open ? own : said;
    if (commanded && said > 0 && said != own)
      reader.note(row.path, strf("%s %lld gives way to %s=%lld of the command line", row.path,
                                 static_cast<long long>(said), row.key, static_cast<long long>(own)));
  }
  return given;
}

// A file without a batch leaves it to the config.
void take_config_batch(Reader& reader, BatchTriple& given) {
  if (given.batch > 0 || given.micro > 0) return;
  for (const TripleKey& row : kTriple)
    if (given.*row.field == 0) given.*row.field = reader.value_of(row.key).get<int64_t>();
}

void explain_misspelt(Reader& reader, const BatchTriple& t, int64_t world) {
  if (!reader.find("micro_batch_per_gpu")) return;
  const auto meant = reader.integer("micro_batch_per_gpu", "", kImages).value_or(0);
  reader.note(
      "micro_batch_per_gpu",
      strf("micro_batch_per_gpu %lld is no key of DeepSpeed (it reads train_micro_batch_size_per_gpu) "
           "and has no effect, as there: the micro-batch is %lld / %lld rank%s / %lld accumulation = "
           "%lld",
           static_cast<long long>(meant), static_cast<long long>(t.batch), static_cast<long long>(world),
           world == 1 ? "" : "s", static_cast<long long>(t.accumulation), static_cast<long long>(t.micro)));
}

}  // namespace

void read_batch(Reader& reader) {
  const MeshConfig mesh = reader.config().mesh;
  validate(mesh);
  const int64_t world =
      reader.ranks() > 0 ? resolved_mesh(reader.config(), reader.ranks()).dp : std::max<int64_t>(mesh.dp, 1);
  BatchTriple given = given_triple(reader);
  take_config_batch(reader, given);
  for (const TripleKey& row : kTriple)
    if (given.*row.field < 0 || given.*row.field > static_cast<int64_t>(kImages.most))
      throw Error(ErrorKind::kConfig, strf("%s is %lld", row.key, static_cast<long long>(given.*row.field)),
                  "expected 1 to " + limit_text(kImages.most));
  const BatchTriple t = complete_triple(given, world, reader.place());
  for (const TripleKey& row : kTriple) {
    reader.set(row.key, t.*row.field, row.path);
    if (reader.is_auto(row.path))
      reader.note(row.path, strf("%s is \"auto\": %lld, %s", row.path, wide(t.*row.field),
                                 given.*row.field > 0 ? "as given" : "from the other two"));
  }
  explain_misspelt(reader, t, world);
  reader.note(
      "train_batch_size",
      strf("an update takes %lld images: %lld on each of %lld data-parallel rank%s, %lld time%s",
           static_cast<long long>(t.batch), static_cast<long long>(t.micro), static_cast<long long>(world),
           world == 1 ? "" : "s", static_cast<long long>(t.accumulation), t.accumulation == 1 ? "" : "s"));
}

}  // namespace deepspeed

}  // namespace vitrail
