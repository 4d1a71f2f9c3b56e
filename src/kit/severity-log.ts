import type { Log, LogFields, LogLevel } from "./log.ts";

/** The words of the API for how serious a message is. */
type Severity = "Trace" | "Debug" | "Info" | "Warning" | "Error" | "Fatal" | "None";

const RANK: Record<Severity, number> = { Trace: -1, Debug: 0, Info: 1, Warning: 2, Error: 3, Fatal: 4, None: 5 };

export const severityOf: Readonly<Record<LogLevel, Severity>> = {
  ...{ debug: "Debug", info: "Info", warn: "Warning", error: "Error" },
};

/** The same log without what is less serious than is asked for now. It can only be quieter than the log it is made of. */
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
