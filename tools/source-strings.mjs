// String literals of a TypeScript or JavaScript file, with their lines. Comments, regular expressions and module specifiers are left out.

/** After these a slash begins a regular expression; after anything else it divides. */
const BEFORE_REGEX = /(?:^|[=(,[!&|?:;{}+\-*%~^<>]|\b(?:return|typeof|case|in|of|new|delete|void|throw|await|yield))$/;
const SPECIFIER = /(?:\bfrom|\bimport|\bimport\s*\(|\bvi\.mock\s*\()$/;

/**
 * @param {string} source
 * @returns {{ line: number, text: string }[]} a template is one literal, with `…` for each expression in it
 */
export function stringsOf(source) {
  const found = [];
  scan(source, 0, undefined, found);
  return found.sort((a, b) => a.at - b.at).map(({ at, text }) => ({ line: lineOf(source, at), text }));
}

/** Reads code up to the closing brace of a template's expression, or to the end; returns where it stopped. */
function scan(source, start, closing, found) {
  let at = start;
  let depth = 0;
  let code = "";
  while (at < source.length) {
    const two = source.slice(at, at + 2);
    const one = source[at];
    if (two === "//") {
      at = endOf(source, "\n", at);
    } else if (two === "/*") {
      at = endOf(source, "*/", at + 2) + 2;
    } else if (one === '"' || one === "'") {
      const end = endOfQuoted(source, at);
      if (!SPECIFIER.test(code.trimEnd())) found.push({ at, text: source.slice(at + 1, end - 1) });
      code = '"';
      at = end;
    } else if (one === "`") {
      at = template(source, at, found);
      code = '"';
    } else if (one === "/" && BEFORE_REGEX.test(code.trimEnd())) {
      at = endOfRegex(source, at);
      code = '"';
    } else {
      if (one === "{") depth++;
      if (one === "}" && depth-- === 0 && closing) return at;
      code = (code + one).slice(-24);
      at++;
    }
  }
  return at;
}

function template(source, start, found) {
  let text = "";
  let at = start + 1;
  while (at < source.length && source[at] !== "`") {
    if (source[at] === "\\") {
      text += source.slice(at, at + 2);
      at += 2;
    } else if (source.startsWith("${", at)) {
      text += "…";
      at = scan(source, at + 2, "}", found) + 1;
    } else {
      text += source[at++];
    }
  }
  found.push({ at: start, text });
  return at + 1;
}

function endOfQuoted(source, start) {
  let at = start + 1;
  while (at < source.length && source[at] !== source[start] && source[at] !== "\n") at += source[at] === "\\" ? 2 : 1;
  return at + 1;
}

function endOfRegex(source, start) {
  let inClass = false;
  let at = start + 1;
  for (; at < source.length && source[at] !== "\n"; at++) {
    if (source[at] === "\\") at++;
    else if (source[at] === "[") inClass = true;
    else if (source[at] === "]") inClass = false;
    else if (source[at] === "/" && !inClass) break;
  }
  return at + 1;
}

function endOf(source, text, from) {
  const at = source.indexOf(text, from);
  return at < 0 ? source.length : at;
}

function lineOf(source, at) {
  let line = 1;
  for (let from = source.indexOf("\n"); from >= 0 && from < at; from = source.indexOf("\n", from + 1)) line++;
  return line;
}
