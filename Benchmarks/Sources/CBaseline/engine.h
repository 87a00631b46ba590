#ifndef CBASELINE_ENGINE_H
#define CBASELINE_ENGINE_H

#include "CBaseline.h"

#define SQLITE_HAS_CODEC 1
#include <sqlite3.h>

struct baseline {
    sqlite3 *handle;
};

#endif
