// Network files: what they become, and what is refused with which key.
#include "simulate/network.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "source_root.h"
#include "temp_folder.h"

namespace vitrail {
namespace {

using nlohmann::ordered_json;

ordered_json valid() {
  return {{"format", "vitrail network 1"},
          {"name", "two levels"},
          {"source", "made for a test"},
          {"levels",
           {{{"name", "inside"}, {"topology", "switch"}, {"latency_us", 2}, {"bandwidth_gbps", 80}},
            {{"name", "between"},
             {"topology", "fat_tree"},
             {"latency_us", 5},
             {"hop_us", 1},
             {"bandwidth_gbps", 8},
             {"links", 2},
             {"leaf", 4},
             {"oversubscription", 2}}}}};
}

Network read(const ordered_json& json, const TempFolder& folder) {
  const std::string path = (folder.path() / "network.json").string();
  std::ofstream(path) << json.dump();
  return read_network(path);
}

TEST(Network, IsReadAsWritten) {
  const TempFolder folder;
  EXPECT_EQ(to_json(read(valid(), folder)), valid());
}

// Every key taken away, and every number made absurd, is named.
TEST(Network, RefusesWhatIsMissingNegativeOrAbsurd) {
  const TempFolder folder;
  const auto refused = [&](const ordered_json& json, const std::string& key) {
    try {
      read(json, folder);
      ADD_FAILURE() << key << " was accepted: " << json.dump();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kData);
      EXPECT_NE(error.message().find("'" + key + "'"), std::string::npos) << error.message();
    }
  };
  for (const char* key : {"name", "source", "levels"}) {
    ordered_json json = valid();
    json.erase(key);
    refused(json, key);
  }
  for (const char* key : {"name", "topology", "latency_us", "bandwidth_gbps"}) {
    ordered_json json = valid();
    json["levels"][1].erase(key);
    refused(json, key);
  }
  for (const char* key :
       {"latency_us", "hop_us", "bandwidth_gbps", "links", "leaf", "oversubscription", "cpu_gbps"})
    for (const ordered_json& value :
         {ordered_json(-1), ordered_json(1e30), ordered_json("fast"), ordered_json()}) {
      ordered_json json = valid();
      json["levels"][1][key] = value;
      refused(json, key);
    }
  for (const char* key : {"bandwidth_gbps", "links", "oversubscription"}) {
    ordered_json json = valid();
    json["levels"][1][key] = 0;
    refused(json, key);
  }
  for (const char* key :
       {"jitter", "straggler_share", "straggler_factor", "mtbf_hours", "restart_s", "storage_gbps"})
    for (const double value : {-1.0, 1e30}) {
      ordered_json json = valid();
      json[key] = value;
      refused(json, key);
    }
  ordered_json unknown = valid();
  unknown["levels"][0]["bandwith_gbps"] = 1;
  refused(unknown, "bandwith_gbps");
  ordered_json shape = valid();
  shape["levels"][0]["topology"] = "torus";
  refused(shape, "topology");
}

TEST(Network, HasEightLevelsAtMost) {
  const TempFolder folder;
  ordered_json json = valid();
  json["levels"][1] = json["levels"][0];
  json["levels"][1]["joins"] = 2;
  while (json["levels"].size() < 8) json["levels"].insert(json["levels"].begin() + 1, json["levels"][1]);
  EXPECT_EQ(read(json, folder).levels.size(), 8u);
  json["levels"].push_back(json["levels"][1]);
  try {
    read(json, folder);
    FAIL() << "nine were accepted";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("it has 9 levels; expected 1 to 8"), std::string::npos) << error.message();
  }
}

TEST(Network, LevelsJoinWhatThoseBelowThemHaveJoined) {
  Network network;
  network.name = "three";
  for (const double joins : {0.0, 3.0, 4.0})
    network.levels.push_back(
        {.name = "level", .topology = Topology::kSwitch, .bandwidth_gbps = 8, .joins = joins});
  const std::vector<Tier> tiers = tiers_of(network, 12, 2);
  ASSERT_EQ(tiers.size(), 3u);
  EXPECT_EQ(tiers[0].capacity, 2);
  EXPECT_EQ(tiers[1].capacity, 6);
  EXPECT_EQ(tiers[2].capacity, 24);
  try {
    tiers_of(network, 13, 2);
    FAIL() << "thirteen nodes were joined";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("join 24 devices, and 13 nodes have 26"), std::string::npos)
        << error.message();
  }
}

TEST(Network, IsTiersOfANumberOfNodes) {
  const TempFolder folder;
  const Network network = read(valid(), folder);
  const std::vector<Tier> tiers = tiers_of(network, 12, 8);
  ASSERT_EQ(tiers.size(), 3u);
  EXPECT_EQ(tiers[0].capacity, 8);
  EXPECT_DOUBLE_EQ(tiers[0].bandwidth, 1e10);
  EXPECT_EQ(tiers[1].capacity, 32);  // a leaf
  EXPECT_DOUBLE_EQ(tiers[1].bandwidth, 2e9);
  EXPECT_EQ(tiers[2].capacity, 96);
  EXPECT_DOUBLE_EQ(tiers[2].bandwidth, 4e9);  // of four nodes, halved
  EXPECT_DOUBLE_EQ(tiers[2].latency, 7e-6);
  EXPECT_EQ(tiers_of(network, 4, 1).size(), 1u);
  EXPECT_EQ(tiers_of(network, 1, 8).size(), 1u);
  Network inside = network;
  inside.levels.resize(1);
  EXPECT_THROW(tiers_of(inside, 2, 8), Error);
}

TEST(Network, ExpectsTheSlowestOfManyToBeSlower) {
  Network network;
  EXPECT_DOUBLE_EQ(expected_slowest(network, 1000), 1);
  network.jitter = 0.1;
  EXPECT_DOUBLE_EQ(expected_slowest(network, 1), 1);
  // The expected largest of 2, 10 and 100 normal draws: 0.564, 1.539, 2.508.
  EXPECT_NEAR(expected_slowest(network, 2), 1.0564, 0.004);
  EXPECT_NEAR(expected_slowest(network, 10), 1.1539, 0.002);
  EXPECT_NEAR(expected_slowest(network, 100), 1.2508, 0.002);
  network.jitter = 0, network.straggler_share = 0.01, network.straggler_factor = 2;
  EXPECT_NEAR(expected_slowest(network, 1), 1.01, 1e-12);
  EXPECT_NEAR(expected_slowest(network, 100), 1 + (1 - std::pow(0.99, 100)), 1e-12);
  // One that is hardly slower than usual is not the slowest of many.
  network.jitter = 0.5;
  const double usual = 1 + 0.5 * 2.508;
  network.straggler_factor = 1.01;
  EXPECT_NEAR(expected_slowest(network, 100), usual, 0.01);
  network.straggler_factor = 2;
  // Stragglers differ among themselves, too.
  network.jitter = 0.1, network.straggler_share = 1;
  EXPECT_NEAR(expected_slowest(network, 10), 2 * 1.1539, 0.004);
}

TEST(Network, FilesThatAreShippedAreValid) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(VT_SOURCE_DIR "/configs/networks")) {
    const Network network = read_network(entry.path().string());
    EXPECT_GE(tiers_of(network, 64, 8).size(), 2u) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace vitrail
