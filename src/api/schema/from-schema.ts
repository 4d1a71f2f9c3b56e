/**
 * The TypeScript type of the values a schema accepts. Resources are described once, as schemas; their types are this,
 * so a field cannot be in one and not in the other.
 */
export type FromSchema<S> = S extends { nullable: true } ? Value<S> | null : Value<S>;

type Value<S> = S extends { "x-kubernetes-int-or-string": true }
  ? number | string
  : S extends { enum: readonly (infer V)[] }
    ? V
    : S extends { type: "string" }
      ? string
      : S extends { type: "integer" | "number" }
        ? number
        : S extends { type: "boolean" }
          ? boolean
          : S extends { type: "array"; items: infer I }
            ? FromSchema<I>[]
            : S extends { properties: infer P }
              ? Fields<P, RequiredOf<S>>
              : S extends { additionalProperties: infer V }
                ? Record<string, FromSchema<V>>
                : S extends { type: "object" }
                  ? Record<string, unknown>
                  : unknown;

type RequiredOf<S> = S extends { required?: readonly (infer R)[] } ? (unknown extends R ? never : R) : never;

type Fields<P, R> = Flat<
  { -readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K]> } & {
    -readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K]>;
  }
>;

type Flat<T> = { [K in keyof T]: T[K] };
