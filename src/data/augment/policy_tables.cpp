// The published policies of augmentation as tables: AutoAugment of ImageNet and CIFAR-10, 3-Augment.
#include "data/augment/policy.h"

namespace vitrail {
namespace {

using Op = PolicyOp;

// Cubuk et al. 2019, ImageNet, as in timm: {operation, probability, level}.
constexpr PolicyStep kOriginal[] = {
    {Op::kPosterizeOriginal, 0.4, 8},
    {Op::kRotate, 0.6, 9},
    {Op::kSolarize, 0.6, 5},
    {Op::kAutoContrast, 0.6, 5},
    {Op::kEqualize, 0.8, 8},
    {Op::kEqualize, 0.6, 3},
    {Op::kPosterizeOriginal, 0.6, 7},
    {Op::kPosterizeOriginal, 0.6, 6},
    {Op::kEqualize, 0.4, 7},
    {Op::kSolarize, 0.2, 4},
    {Op::kEqualize, 0.4, 4},
    {Op::kRotate, 0.8, 8},
    {Op::kSolarize, 0.6, 3},
    {Op::kEqualize, 0.6, 7},
    {Op::kPosterizeOriginal, 0.8, 5},
    {Op::kEqualize, 1, 2},
    {Op::kRotate, 0.2, 3},
    {Op::kSolarize, 0.6, 8},
    {Op::kEqualize, 0.6, 8},
    {Op::kPosterizeOriginal, 0.4, 6},
    {Op::kRotate, 0.8, 8},
    {Op::kColor, 0.4, 0},
    {Op::kRotate, 0.4, 9},
    {Op::kEqualize, 0.6, 2},
    {Op::kEqualize, 0, 7},
    {Op::kEqualize, 0.8, 8},
    {Op::kInvert, 0.6, 4},
    {Op::kEqualize, 1, 8},
    {Op::kColor, 0.6, 4},
    {Op::kContrast, 1, 8},
    {Op::kRotate, 0.8, 8},
    {Op::kColor, 1, 2},
    {Op::kColor, 0.8, 8},
    {Op::kSolarize, 0.8, 7},
    {Op::kSharpness, 0.4, 7},
    {Op::kInvert, 0.6, 8},
    {Op::kShearX, 0.6, 5},
    {Op::kEqualize, 1, 9},
    {Op::kColor, 0.4, 0},
    {Op::kEqualize, 0.6, 3},
    {Op::kEqualize, 0.4, 7},
    {Op::kSolarize, 0.2, 4},
    {Op::kSolarize, 0.6, 5},
    {Op::kAutoContrast, 0.6, 5},
    {Op::kInvert, 0.6, 4},
    {Op::kEqualize, 1, 8},
    {Op::kColor, 0.6, 4},
    {Op::kContrast, 1, 8},
    {Op::kEqualize, 0.8, 8},
    {Op::kEqualize, 0.6, 3},
};

// The ImageNet policy of the EfficientNet code for TPUs.
constexpr PolicyStep kV0[] = {
    {Op::kEqualize, 0.8, 1},  {Op::kShearY, 0.8, 4},       {Op::kColor, 0.4, 9},
    {Op::kEqualize, 0.6, 3},  {Op::kColor, 0.4, 1},        {Op::kRotate, 0.6, 8},
    {Op::kSolarize, 0.8, 3},  {Op::kEqualize, 0.4, 7},     {Op::kSolarize, 0.4, 2},
    {Op::kSolarize, 0.6, 2},  {Op::kColor, 0.2, 0},        {Op::kEqualize, 0.8, 8},
    {Op::kEqualize, 0.4, 8},  {Op::kSolarizeAdd, 0.8, 3},  {Op::kShearX, 0.2, 9},
    {Op::kRotate, 0.6, 8},    {Op::kColor, 0.6, 1},        {Op::kEqualize, 1, 2},
    {Op::kInvert, 0.4, 9},    {Op::kRotate, 0.6, 0},       {Op::kEqualize, 1, 9},
    {Op::kShearY, 0.6, 3},    {Op::kColor, 0.4, 7},        {Op::kEqualize, 0.6, 0},
    {Op::kPosterize, 0.4, 6}, {Op::kAutoContrast, 0.4, 7}, {Op::kSolarize, 0.6, 8},
    {Op::kColor, 0.6, 9},     {Op::kSolarize, 0.2, 4},     {Op::kRotate, 0.8, 9},
    {Op::kRotate, 1, 7},      {Op::kTranslateY, 0.8, 9},   {Op::kShearX, 0, 0},
    {Op::kSolarize, 0.8, 4},  {Op::kShearY, 0.8, 0},       {Op::kColor, 0.6, 4},
    {Op::kColor, 1, 0},       {Op::kRotate, 0.6, 2},       {Op::kEqualize, 0.8, 4},
    {Op::kEqualize, 0, 8},    {Op::kEqualize, 1, 4},       {Op::kAutoContrast, 0.6, 2},
    {Op::kShearY, 0.4, 7},    {Op::kSolarizeAdd, 0.6, 7},  {Op::kPosterize, 0.8, 2},
    {Op::kSolarize, 0.6, 10}, {Op::kSolarize, 0.6, 8},     {Op::kEqualize, 0.6, 1},
    {Op::kColor, 0.8, 6},     {Op::kRotate, 0.4, 5},
};

// Cubuk et al. 2019, CIFAR-10, as in torchvision.
constexpr PolicyStep kCifar10[] = {
    {Op::kInvert, 0.1, 0},       {Op::kContrast, 0.2, 6},     {Op::kRotate, 0.7, 2},
    {Op::kTranslateX, 0.3, 9},   {Op::kSharpness, 0.8, 1},    {Op::kSharpness, 0.9, 3},
    {Op::kShearY, 0.5, 8},       {Op::kTranslateY, 0.7, 9},   {Op::kAutoContrast, 0.5, 0},
    {Op::kEqualize, 0.9, 0},     {Op::kShearY, 0.2, 7},       {Op::kPosterize, 0.3, 7},
    {Op::kColor, 0.4, 3},        {Op::kBrightness, 0.6, 7},   {Op::kSharpness, 0.3, 9},
    {Op::kBrightness, 0.7, 9},   {Op::kEqualize, 0.6, 0},     {Op::kEqualize, 0.5, 0},
    {Op::kContrast, 0.6, 7},     {Op::kSharpness, 0.6, 5},    {Op::kColor, 0.7, 7},
    {Op::kTranslateX, 0.5, 8},   {Op::kEqualize, 0.3, 0},     {Op::kAutoContrast, 0.4, 0},
    {Op::kTranslateY, 0.4, 3},   {Op::kSharpness, 0.2, 6},    {Op::kBrightness, 0.9, 6},
    {Op::kColor, 0.2, 8},        {Op::kSolarize, 0.5, 2},     {Op::kInvert, 0, 0},
    {Op::kEqualize, 0.2, 0},     {Op::kAutoContrast, 0.6, 0}, {Op::kEqualize, 0.2, 0},
    {Op::kEqualize, 0.6, 0},     {Op::kColor, 0.9, 9},        {Op::kEqualize, 0.6, 0},
    {Op::kAutoContrast, 0.8, 0}, {Op::kSolarize, 0.2, 8},     {Op::kBrightness, 0.1, 3},
    {Op::kColor, 0.7, 0},        {Op::kSolarize, 0.4, 5},     {Op::kAutoContrast, 0.9, 0},
    {Op::kTranslateY, 0.9, 9},   {Op::kTranslateY, 0.7, 9},   {Op::kAutoContrast, 0.9, 0},
    {Op::kSolarize, 0.8, 3},     {Op::kEqualize, 0.8, 0},     {Op::kInvert, 0.1, 0},
    {Op::kTranslateY, 0.7, 9},   {Op::kAutoContrast, 0.9, 0},
};

// Touvron et al. 2022, DeiT III: one of solarize at 128, grey, blur.
constexpr PolicyStep k3Augment[] = {
    {Op::kSolarize, 1, 5}, {Op::kDesaturate, 1, 10}, {Op::kGaussianBlur, 1, 10}};

constexpr PolicyTable kTables[] = {
    {"original", LevelScale::kPlain, 2, kOriginal},
    {"v0", LevelScale::kPlain, 2, kV0},
    {"cifar10", LevelScale::kTenSteps, 2, kCifar10},
    {"3a", LevelScale::kPlain, 1, k3Augment},
};

}  // namespace

std::span<const PolicyTable> policy_tables() {
  return kTables;
}

}  // namespace vitrail
