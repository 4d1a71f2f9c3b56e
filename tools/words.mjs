// Words that must not be in the project: they tie it to one machine, one person or one mirror.

const WORDS = [
  // Spelt in pieces, so that this file does not find itself.
  {
    what: "an absolute home path",
    pattern: new RegExp(`(?<![\\w./~}-])/(?:${["home", "Users", "root", "work"].join("|")})/[\\w.]`),
  },
  {
    what: "a package host",
    pattern: new RegExp(["registry\\.npm", "js\\.org|deb\\.deb", "ian\\.org|artif", "actory\\."].join("")),
  },
  { what: "a resolved download address", pattern: new RegExp(`"resol${"ved"}": "http`) },
];

/** Text that comes from elsewhere and is kept as it is. */
const AS_IT_IS = /\.gen\.|^LICENSE$/;

export function wordProblems(files) {
  return [...files].flatMap(([path, text]) => {
    if (AS_IT_IS.test(path)) return [];
    return text
      .split("\n")
      .flatMap((line, index) =>
        WORDS.filter(({ pattern }) => pattern.test(line)).map(({ what }) => `${path}:${index + 1}: ${what}`),
      );
  });
}
