import type { Log, LogFields } from "../kit/log.ts";
import type { Settings } from "./settings/effective-settings.ts";

type Severity = Settings["logSeverityScreen"];

const RANK: Record<Severity, number> = { Debug: 0, Info: 1, Warning: 2, Error: 3, Fatal: 4, None: 5 };

/** The same log without what is less serious than the settings ask for. It can only be quieter than the process was started to be. */
export function severityLog(log: Log, least: () => Severity): Log {
  const at =
    (severity: Severity, write: (fields: LogFields, message: string) => void) =>
    (fields: LogFields, message: string): void => {
      if (RANK[severity] >= RANK[least()]) write(fields, message);
    };
  return {
    debug: at("Debug", (fields, message) => log.debug(fields, message)),
    info: at("Info", (fields, message) => log.info(fields, message)),
    warn: at("Warning", (fields, message) => log.warn(fields, message)),
    error: at("Error", (fields, message) => log.error(fields, message)),
    child: (fields) => severityLog(log.child(fields), least),
  };
}
