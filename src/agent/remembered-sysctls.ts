import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { countingSysctls, nodeSysctls, type Sysctls } from "../dataplane/net/sysctls.ts";

/** Settings of the node itself. Those of pod interfaces go with the interfaces. */
const OF_NODE: ReadonlySet<string> = new Set([...nodeSysctls(true), ...countingSysctls()].map(([path]) => path));

/** The same settings; the value that a setting of the node had before we first changed it is on disk, for the removal. */
export function rememberedSysctls(sysctls: Sysctls, file: string): Sysctls {
  return {
    read: (path) => sysctls.read(path),
    write(path, value) {
      const before = OF_NODE.has(path) ? sysctls.read(path) : undefined;
      const known = before === undefined ? {} : readValues(file);
      if (before !== undefined && known[path] === undefined) {
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        writeFileSync(file, JSON.stringify({ ...known, [path]: before }), { mode: 0o600 });
      }
      return sysctls.write(path, value);
    },
  };
}

/** Restores what was changed; gives the settings as `PATH=VALUE`. */
export function restoreSysctls(sysctls: Sysctls, file: string): string[] {
  return Object.entries(readValues(file)).flatMap(([path, value]) =>
    OF_NODE.has(path) && sysctls.write(path, value) ? [`${path}=${value}`] : [],
  );
}

function readValues(file: string): Record<string, string> {
  if (!existsSync(file)) return {};
  try {
    const read = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown> | null;
    const values = Object.entries(read ?? {}).filter(([, value]) => typeof value === "string");
    return Object.fromEntries(values) as Record<string, string>;
  } catch {
    // Cut off while it was written: then nothing is known of before.
    return {};
  }
}
