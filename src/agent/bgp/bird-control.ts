import { connect } from "node:net";
import { dirname, join } from "node:path";
import { BIRD_FILES } from "../../api/protocol/node-bgp.ts";

/** The agent writes the configuration, the BGP container runs it; both see this directory of the node. */
export interface BgpPlaces {
  directory: string;
  configuration: string;
  control: string;
  /** There once a daemon was started, until the node is. */
  started: string;
}

export function bgpPlaces(runDirectory: string): BgpPlaces {
  const control = join(runDirectory, BIRD_FILES.control);
  const directory = dirname(control);
  return {
    ...{ directory, control },
    configuration: join(runDirectory, BIRD_FILES.configuration),
    started: join(directory, "started"),
  };
}

/** One line of an answer, with its code: 0 to 0999 is success, 8000 and above failure, in between what was asked for. */
export interface ControlLine {
  code: number;
  text: string;
}

const ANSWER_MS = 5_000;
const FIRST_FAILURE = 8_000;

/** What the daemon answers to one command. Rejects if it does not run, does not answer in time, or refuses the command. */
export function askBird(control: string, command: string): Promise<ControlLine[]> {
  return new Promise((resolve, reject) => {
    const socket = connect(control);
    const lines: ControlLine[] = [];
    let [rest, greeted, code] = ["", false, 0];
    const fail = (error: Error) => {
      clearTimeout(timer);
      socket.destroy();
      reject(error);
    };
    const timer = setTimeout(() => fail(new Error(`no answer within ${ANSWER_MS / 1000} s`)), ANSWER_MS);
    const take = (line: string): void => {
      const [, number, mark, text = ""] = /^(\d{4})([ -])(.*)$/.exec(line) ?? [];
      // What belongs to the code before begins with a blank.
      if (number !== undefined) code = Number(number);
      if (!greeted) {
        greeted = true;
        socket.write(`${command}\n`);
        return;
      }
      lines.push({ code, text: number === undefined ? line.slice(1) : text });
      if (mark !== " ") return;
      clearTimeout(timer);
      socket.end();
      if (code >= FIRST_FAILURE) reject(new Error(text));
      else resolve(lines);
    };
    socket.setEncoding("utf8");
    socket.on("error", fail);
    socket.on("close", () => fail(new Error("the connection was closed")));
    socket.on("data", (text: string) => {
      const parts = `${rest}${text}`.split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) take(line);
    });
  });
}
