// Marks what libvitrail shows to the programs that link it; everything else stays inside the library.
#pragma once

#define VITRAIL_API __attribute__((visibility("default")))
