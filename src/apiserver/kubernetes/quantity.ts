const SUFFIXES: Readonly<Record<string, number>> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
};

/** The number a quantity stands for: `500m` is 0.5. NaN when it is not one. */
export function quantityValue(quantity: string | number): number {
  if (typeof quantity === "number") return quantity;
  const [, digits = "", suffix = ""] = /^([+-]?[\d.]+(?:[eE][+-]?\d+)?)([A-Za-z]*)$/.exec(quantity) ?? [];
  const factor = SUFFIXES[suffix];
  return factor === undefined || digits === "" ? Number.NaN : Number(digits) * factor;
}
