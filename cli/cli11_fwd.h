// Names of CLI11 for headers. Its own header takes seconds to read: only files that parse include
// it.
#pragma once

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI
