// Marks the symbols that libvitrail exports to the programs that link it; everything else stays hidden.
#pragma once

#define VITRAIL_API __attribute__((visibility("default")))
