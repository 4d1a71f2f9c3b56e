/**
 * The published manifests by name, and the files of the flow UI as `page/NAME`, where they are inside the executable itself. Only the self-contained
 * file of a release has them: `tools/release.mjs` puts its own text in place of this module. A checkout and the image have folders.
 */
export function embeddedFiles(): Readonly<Record<string, string>> | undefined {
  return undefined;
}
