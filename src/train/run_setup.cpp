#include "train/run_setup.h"

#include "base/checked.h"
#include "base/cores.h"
#include "data/image_form.h"
#include "plan/devices.h"
#include "train/balance.h"
#include "train/group_relay.h"

namespace vitrail {

namespace {

// The types of the tensors, and the arithmetic of the GEMMs in the blocks.
struct ComputeRow {
  DType dtype;
  Arithmetic arithmetic = Arithmetic::kExact;
};
ComputeRow compute_row(ComputeType type) {
  constexpr ComputeRow kRows[] = {{DType::kF32},
                                  {DType::kBF16},
                                  {DType::kF16},
                                  {DType::kBF16, Arithmetic::kFp8},
                                  {DType::kF32, Arithmetic::kTF32}};
  return kRows[static_cast<size_t>(type)];
}

ScoreKind score_kind(TrainLoss loss) {
  return loss == TrainLoss::kSoftmax ? ScoreKind::kSoftmax : ScoreKind::kSigmoid;
}

// Adapters and heads are trained and the rest is frozen, unless the given patterns say otherwise.
std::vector<std::string> with_adapters(const std::vector<std::string>& given, const VitConfig& model) {
  std::vector<std::string> freeze = {"*", "!*.lora_*", "!head.*"};
  if (model.distilled) freeze.push_back("!head_dist.*");
  freeze.insert(freeze.end(), given.begin(), given.end());
  return freeze;
}

StepConfig step_of(const TrainConfig& config, const VitConfig& model) {
  StepConfig step;
  step.model = model;
  step.micro_batch = config.train.batch / config.train.accumulation;
  step.eval_batch = config.train.eval_batch * config.mesh.dp;
  step.distribution.tokens_on_tp = config.mesh.tokens_on_tp;
  step.distribution.batch_unit = config.augment.mixes() ? config.augment.mix_group : 1;
  step.stages = stages_of(config.mesh, config.train.accumulation, model.depth);
  step.zero = static_cast<int>(config.mesh.zero);
  step.whole_sums = config.mesh.zero >= 2 && config.mesh.accumulate == KeptSums::kWhole;
  step.bucket_bytes = static_cast<size_t>(config.mesh.bucket_mb * (1 << 20));
  step.offload = config.mesh.offload;
  step.precision.compute = compute_row(config.train.dtype).dtype;
  step.arithmetic = compute_row(config.train.dtype).arithmetic;
  step.precision.residual = config.train.low_residual ? step.precision.compute : DType::kF32;
  step.dropout = config.train.dropout;
  step.drop_path = config.train.drop_path;
  step.lora = config.lora;
  step.loss = loss_kind(config.train.loss);
  step.distill = config.distill;
  step.recompute = {config.train.recompute, config.train.recompute_every};
  step.optim = config.optim;
  step.loss_scale = loss_scale_rule(config.loss_scale, config.train.dtype == ComputeType::kF16);
  std::vector<NamedParam> params;
  for (const ParamSpec& spec : step_params(model, config.lora))
    params.push_back({spec.name, {step.master, spec.shape}});
  ParamGroupConfig groups = config.params;
  if (config.lora.rank > 0) groups.freeze = with_adapters(groups.freeze, model);
  step.trained = group_params(params, groups, config.optim.weight_decay);
  return step;
}

// A dataset up to this share of a GPU's memory is kept there.
constexpr double kStoredShare = 0.05;

void choose_form(RunSetup& setup, const DeviceInfo& device) {
  ImageLimits limits;
  limits.own_memory = !device.shares_host_memory;
  limits.stored_bytes = static_cast<size_t>(kStoredShare * static_cast<double>(device.memory_bytes));
  if (setup.config.distill.kind != DistillKind::kNone) limits.needs_floats = "the teacher reads them too";
  const ImageChoice choice = choose_images(setup.loader_settings(Purpose::kTrain), *setup.data.train, limits);
  setup.step.images = choice.form;
  if (choice.form == ImageForm::kStored) setup.step.stored_images = setup.data.train->size();
  setup.images = choice.note;
}

// Returns the larger need of training and evaluation, since the two take turns.
size_t decoding_bytes(const RunSetup& setup) {
  const auto needed = [&](Purpose purpose, const Dataset* data) -> size_t {
    const LoaderSettings settings = setup.loader_settings(purpose);
    const bool decodes = data && !settings.receives && !settings.targets_only;
    return decodes ? Loader::decoding_bytes(settings.loader, *data) : 0;
  };
  return std::max(needed(Purpose::kTrain, setup.data.train.get()),
                  needed(Purpose::kEval, setup.data.val.get()));
}

std::string number(int64_t value) {
  return strf("%lld", static_cast<long long>(value));
}

std::string describe_balance(const RunSetup& setup) {
  const std::vector<int64_t> shares = setup.shares();
  std::string text = strf("a micro-batch of %lld images is cut by mesh.balance: %s",
                          static_cast<long long>(setup.step.micro_batch), shares_text(shares).c_str());
  if (const int64_t unit = setup.step.distribution.batch_unit; unit > 1)
    text += strf(", in groups of %lld; the last group is that of dp=%zu", static_cast<long long>(unit),
                 shares.size() - 1);
  return text + "; evaluations are cut in proportion";
}

// Notes what of the data does not divide among ranks, and what becomes of the rest.
void describe_shares(RunSetup& setup) {
  const Distribution& how = setup.step.distribution;
  const int ranks = how.mesh.size(Axis::kData);
  if (ranks == 1) return;
  const std::vector<int64_t> shares = setup.shares();
  const auto [least, most] = std::minmax_element(shares.begin(), shares.end());
  const bool measured = parse_balance(setup.config.mesh.balance).measured;  // told when it is done
  if (!how.cuts.empty())
    setup.notes.push_back(describe_balance(setup));
  else if (*least < *most && !measured)
    setup.notes.push_back(
        strf("a micro-batch of %lld images is cut unevenly among %d ranks: %lld to %lld each",
             static_cast<long long>(setup.step.micro_batch), ranks, static_cast<long long>(*least),
             static_cast<long long>(*most)));
  const int64_t images = setup.data.train->size(), left = images % setup.config.train.batch;
  if (left > 0 && images > left)
    setup.notes.push_back(number(images) + " training images are no whole number of updates of " +
                          number(setup.config.train.batch) + ": each pass leaves out " + number(left) +
                          " of them, other ones every time");
  const int64_t evaluated = setup.data.val ? setup.data.val->size() % setup.step.eval_batch : 0;
  if (evaluated > 0)
    setup.notes.push_back("the last batch of an evaluation has " + number(evaluated) + " of " +
                          number(setup.step.eval_batch) +
                          " images on all ranks together; its padding does not count");
}

// Notes what a pipeline costs, where it has too few micro-batches to hide its filling and draining.
void describe_stages(RunSetup& setup) {
  const int stages = setup.step.distribution.mesh.size(Axis::kPipeline);
  if (setup.step.stages.micros >= stages) return;
  const double bubble =
      bubble_of(pipeline_turns(setup.step.stages.shape(setup.step.distribution.mesh)), stages);
  setup.notes.push_back(
      strf("a pipeline of %d stages has %lld micro-batches an update: stages wait %.0f %% of "
           "the time; train.accumulation of %d or more fills it",
           stages, static_cast<long long>(setup.step.stages.micros), 100 * bubble, 4 * stages));
}

// Refuses what a pipeline does not do.
void require_pipeline(const RunSetup& setup, const DeviceInfo& device) {
  if (setup.config.mesh.pp == 1) return;
  VT_REQUIRE(setup.config.distill.kind == DistillKind::kNone, ErrorKind::kConfig,
             "distill.kind is %s with mesh.pp %lld: a teacher does not run in a pipeline",
             enum_name(setup.config.distill.kind), static_cast<long long>(setup.config.mesh.pp));
  VT_REQUIRE(device.shares_host_memory, ErrorKind::kConfig,
             "mesh.pp %lld on %s: a pipeline runs on CPUs; mesh.tp and mesh.zero share out a model on GPUs",
             static_cast<long long>(setup.config.mesh.pp), device.name.c_str());
}

void describe(RunSetup& setup) {
  setup.notes.insert(setup.notes.end(), setup.data.notes.begin(), setup.data.notes.end());
  const PreparedModel& model = *setup.model;
  setup.notes.insert(setup.notes.end(), model.notes.begin(), model.notes.end());
  setup.notes.insert(setup.notes.end(), model.card.warnings.begin(), model.card.warnings.end());
  if (!setup.images.empty()) setup.notes.push_back("images: " + setup.images);
  if (setup.config.train.batch > setup.data.train->size())
    setup.notes.push_back(strf("an update of %lld images sees some of the %lld several times",
                               static_cast<long long>(setup.config.train.batch),
                               static_cast<long long>(setup.data.train->size())));
  if (setup.config.augment.hflip > 0 && setup.config.data.train.starts_with("idx:"))
    setup.notes.push_back(
        strf("augment.hflip is %g: right for things, wrong for digits and letters, which want "
             "augment.hflip=0",
             setup.config.augment.hflip));
  describe_shares(setup);
  if (const std::string text = needless_text(setup.config.mesh); !text.empty()) setup.notes.push_back(text);
  describe_stages(setup);
  int64_t trained = 0;
  for (const TrainedParam& param : setup.step.trained) trained += param.desc.elems();
  const int64_t all = count_params(model.card.config);
  if (trained < all)
    setup.notes.push_back(
        strf("trains %lld of %lld parameters", static_cast<long long>(trained), static_cast<long long>(all)));
}

}  // namespace

LoaderSettings RunSetup::loader_settings(Purpose purpose) const {
  const bool train = purpose == Purpose::kTrain;
  LoaderSettings settings;
  settings.loader = config.loader;
  settings.augment = config.augment;
  settings.preprocess = model->card.preprocess;
  settings.seed = static_cast<uint64_t>(config.train.seed);
  settings.take(train ? train_share : eval_share);
  settings.accumulation = train ? config.train.accumulation : 1;
  settings.channels = model->card.config.channels;
  settings.classes = model->card.config.classes;
  settings.smoothing = train ? config.train.smoothing : 0;
  settings.form = train ? step.images : ImageForm::kFloats;
  settings.relay = train ? relay : eval_relay;
  const Mesh& mesh = step.distribution.mesh;
  settings.receives = receives_images(mesh, handed_along(purpose, config.loader.on_error));
  settings.targets_only = needs_targets_only(mesh, purpose, config.loader.on_error);
  if (settings.targets_only) settings.loader.workers = 1;
  return settings;
}

void RunSetup::reach(MeshCommunicators* ranks) {
  relay = group_relay(ranks, handed_along(Purpose::kTrain, config.loader.on_error));
  eval_relay = group_relay(ranks, handed_along(Purpose::kEval, config.loader.on_error));
}

size_t RunSetup::loader_bytes(int64_t micro_batch) const {
  LoaderSettings train = loader_settings(Purpose::kTrain), eval = loader_settings(Purpose::kEval);
  if (micro_batch != config.train.micro_batch) {
    eval.micro_batch = std::min(eval.micro_batch, micro_batch);
    train.micro_batch = micro_batch;
  }
  return Loader::staging_bytes(train) + (data.val ? Loader::staging_bytes(eval) : 0);
}

namespace {

// Gives a rank its place in the mesh and its rows of every batch.
void take_place(RunSetup& setup, int rank) {
  Distribution& how = setup.step.distribution;
  how.mesh = mesh_of(setup.config.mesh, rank);
  require_divisible_heads(setup.step.model.heads, how.mesh);
  share_of(setup.step.micro_batch, how.mesh, how.batch_unit, "a micro-batch");
  take_shares(setup, parse_balance(setup.config.mesh.balance).shares);
}

}  // namespace

std::vector<int64_t> RunSetup::shares() const {
  return shares_of_cuts(cuts_of(Dim('B', step.micro_batch), Axis::kData, step.distribution));
}

std::vector<int64_t> RunSetup::eval_cuts() const {
  Distribution how = step.distribution;
  how.batch_unit = 1;  // nothing is mixed
  return cuts_of(Dim('B', step.eval_batch), Axis::kData, how);
}

void take_shares(RunSetup& setup, const std::vector<int64_t>& shares) {
  Distribution& how = setup.step.distribution;
  how.cuts.clear();
  if (!shares.empty()) how.cuts = cuts_by_shares(shares, setup.step.eval_batch);
  setup.train_share = share_of(cuts_of(Dim('B', setup.step.micro_batch), Axis::kData, how), how.mesh);
  setup.eval_share = share_of(setup.eval_cuts(), how.mesh);
}

RunSetup set_up(const TrainConfig& given, const DeviceInfo& device, RankPlace place) {
  RunSetup setup;
  setup.config = resolved(given, place.world);
  // Ranks share the cores that they are not bound to alone; those with the same images have one that decodes.
  int64_t& workers = setup.config.loader.workers;
  const Mesh mesh = mesh_of(setup.config.mesh, place.rank);
  const bool once = setup.config.loader.on_error == OnError::kFail;  // a pipeline
  const int64_t same = mesh.size(once ? kSameImages.with(Axis::kPipeline) : kSameImages);
  const HostRank seat{.sharing = place.sharing, .overlapping = place.overlapping};
  if (workers == 0 && place.sharing > 1)
    workers = std::clamp<int64_t>(seat.threads() * same / 2, 1,
                                  std::max<int64_t>(1, std::ssize(allowed_cores()) / 2));
  setup.data = open_data(setup.config.data);
  setup.model =
      prepare_model(setup.config.model, static_cast<uint64_t>(setup.config.train.seed),
                    setup.data.train->classes(), score_kind(setup.config.train.loss), setup.config.lora);
  if (setup.data.train->multi_label())
    VT_REQUIRE(setup.config.train.loss != TrainLoss::kSoftmax, ErrorKind::kConfig,
               "the data gives several labels an image: set train.loss to bce_mean or bce_sum");
  setup.step = step_of(setup.config, setup.model->card.config);
  // They share them for their updates, too.
  if (place.sharing > 1) setup.step.host_threads = seat.threads();
  take_place(setup, place.rank);
  require_pipeline(setup, device);
  validate(setup.loader_settings(Purpose::kTrain), *setup.data.train, Purpose::kTrain);
  choose_form(setup, device);
  setup.decoding_bytes = decoding_bytes(setup);
  setup.steps_per_epoch = steps_per_epoch(setup.data.train->size(), setup.config.train.batch);
  const RunConfig& run = setup.config.train;
  const auto product =
      checked_mul(static_cast<uint64_t>(run.epochs), static_cast<uint64_t>(setup.steps_per_epoch));
  VT_REQUIRE(run.steps > 0 || (product && *product < (uint64_t{1} << 53)), ErrorKind::kConfig,
             "train.epochs is %lld: more steps than can be counted", static_cast<long long>(run.epochs));
  setup.total_steps = run.steps > 0 ? run.steps : static_cast<int64_t>(*product);
  describe(setup);
  const std::string advice = device.shares_host_memory ? update_advice(setup.config.mesh, place.sharing) : "";
  if (!advice.empty()) setup.notes.push_back(advice);
  return setup;
}

}  // namespace vitrail
