import stringWidth from "string-width";

/** Where output is read: a narrow terminal, a wide one, or a file and another program. */
export const VIEWS = ["80 columns", "160 columns", "piped"] as const;
export type View = (typeof VIEWS)[number];

export function columnsOf(view: View): number {
  return view === "piped" ? Number.POSITIVE_INFINITY : Number.parseInt(view, 10);
}

/** What is read in the end, and what a terminal or a pipe should never have been sent. */
export interface Screen {
  write(text: string): void;
  text(): string;
  readonly faults: readonly string[];
}

export function openScreen(view: View): Screen {
  return view === "piped" ? pipe() : terminal(columnsOf(view));
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not be in a pipe.
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;

/** A pipe keeps everything: what would move a cursor or colour a word is noise to its reader. */
function pipe(): Screen {
  let text = "";
  const faults: string[] = [];
  return {
    write(more) {
      text += more;
      if (CONTROL.test(more)) faults.push(`a control character in a pipe: ${JSON.stringify(more)}`);
    },
    text: () => text,
    faults,
  };
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what a terminal acts on.
const TOKEN = /\x1b\[([0-9;]*)([A-Za-z])|[\s\S]/gu;

/** The lines a terminal shows after everything was drawn: redrawn lines once, colours left out. */
function terminal(columns: number): Screen {
  let lines = [""];
  let row = 0;
  let column = 0;
  const faults: string[] = [];
  const put = (sign: string) => {
    const line = lines[row] ?? "";
    lines[row] = line.slice(0, column) + sign + line.slice(column + sign.length);
    column += sign.length;
  };
  const controls: Record<string, (argument: string) => void> = {
    m: () => {},
    A: (count) => {
      row = Math.max(0, row - Number(count || 1));
    },
    H: () => {
      row = 0;
      column = 0;
    },
    J: (what) => {
      lines = what === "2" ? [] : [...lines.slice(0, row), (lines[row] ?? "").slice(0, column)];
    },
  };
  const act = (token: string, argument: string | undefined, letter: string | undefined) => {
    const control = letter === undefined ? undefined : controls[letter];
    if (control) return control(argument ?? "");
    if (token === "\n") {
      row += 1;
      column = 0;
      lines[row] ??= "";
    } else if (token === "\r") column = 0;
    else if (CONTROL.test(token)) faults.push(`a sequence no command uses: ${JSON.stringify(token)}`);
    else put(token);
  };
  return {
    write(text) {
      for (const [token, argument, letter] of text.matchAll(TOKEN)) {
        act(token, argument, letter);
        if (token === "\n" || letter === "A") continue;
        const line = lines[row] ?? "";
        // Once is enough: the signs after it only make it wider.
        if (stringWidth(line) === columns + 1) faults.push(`wider than ${columns} columns: ${line}`);
      }
    },
    text: () => lines.join("\n"),
    faults,
  };
}
