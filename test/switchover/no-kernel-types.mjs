// For an agent that is to believe that its kernel does not tell its types: then programs cannot ask the kernel's connection tracking, as on
// kernels before 5.18 or where it is a module.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

const { readFileSync } = fs;
fs.readFileSync = (path, ...rest) => {
  if (path === "/sys/kernel/btf/vmlinux") throw Object.assign(new Error("no types"), { code: "ENOENT" });
  return readFileSync(path, ...rest);
};
syncBuiltinESMExports();
