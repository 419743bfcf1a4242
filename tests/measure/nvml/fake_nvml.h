// What the stand-in for the driver's management library answers; a test sets it.
#pragma once

struct FakeNvml {
  int init = 0, count = 0;       // what the calls return; 0: success
  unsigned gpus = 2;             // the number told, even where the call fails
  int handle[2] = {}, name = 0;  // handles by GPU
  int memory = 0, use = 0, temperature = 0, power = 0;
  unsigned long long total[2] = {100, 1000}, used[2] = {10, 20};
  unsigned load[2] = {25, 75}, degrees[2] = {40, 50}, milliwatts[2] = {1500, 2000};
  int reads = 0;  // calls for memory
};
