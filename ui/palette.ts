/** Colours of the style sheet for what draws by itself, as the theme and the system have them now. */
export interface Palette {
  ink: string;
  dim: string;
  box: string;
  node: string;
  edge: string;
  card: string;
  allowed: string;
  allowedFill: string;
  denied: string;
  deniedFill: string;
  accent: string;
}

const NAMES: Readonly<Record<keyof Palette, string>> = {
  ...{ ink: "--ink", dim: "--dim", box: "--hull", node: "--node", edge: "--edge", card: "--card" },
  ...{ allowed: "--ok", allowedFill: "--ok-fill", denied: "--bad", deniedFill: "--bad-fill", accent: "--accent" },
};

/** A property that holds another function is only resolved where it is used as a colour. */
export function paletteOf(place: HTMLElement): Palette {
  const probe = document.createElement("span");
  place.append(probe);
  const entries = Object.entries(NAMES).map(([name, property]) => {
    probe.style.color = `var(${property})`;
    return [name, getComputedStyle(probe).color];
  });
  probe.remove();
  return Object.fromEntries(entries) as unknown as Palette;
}
