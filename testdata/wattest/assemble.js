// Reads a text module from standard input, writes the binary module to standard output. process.argv[1] is the folder
// of wabt 1.0.39 (a change of the version changes this text and so the cache keys).
const fs = require("fs");
const features = {
  exceptions: true, mutable_globals: true, sat_float_to_int: true, sign_extension: true, simd: true,
  threads: true, function_references: true, multi_value: true, tail_call: true, bulk_memory: true,
  reference_types: true, annotations: true, gc: true, memory64: true, multi_memory: true,
  extended_const: true, relaxed_simd: true,
};
require(process.argv[1] + "/index.js")().then((wabt) => {
  const module = wabt.parseWat("module.wat", fs.readFileSync(0, "utf8"), features);
  const { buffer } = module.toBinary({ write_debug_names: true });
  process.stdout.write(buffer);
}).catch((e) => {
  console.error(e.message);
  process.exit(1);
});
