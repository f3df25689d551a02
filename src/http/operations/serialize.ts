// Answers → text, by the schema of the operation: what the schema does not name does not go out.
import stringifier from 'fast-json-stringify'
import type { TSchema } from 'typebox'

export type Serialize = (answer: unknown) => string

type Union = TSchema & { anyOf: TSchema[] }
type Shape = TSchema & { properties?: Record<string, object> }

/** Made when it is first needed: of the many answers that a server can give, most are never asked for in its first second. */
export function serializerFor(schema: TSchema): Serialize {
  let serialise: Serialize | undefined
  return (answer) => {
    serialise ??=
      'anyOf' in schema ? byConstants((schema as Union).anyOf) : (stringifier(schema) as Serialize)
    return serialise(answer)
  }
}

/** Of several shapes, the one whose constants the answer has. The library would validate against one after the other. */
function byConstants(shapes: Shape[]): Serialize {
  const kinds = shapes.map((shape) => ({
    constants: Object.entries(shape.properties ?? {}).flatMap(([name, property]) =>
      'const' in property ? [[name, property.const] as const] : [],
    ),
    serialise: serializerFor(shape),
  }))
  return (answer) => {
    const fits = ({ constants }: (typeof kinds)[number]) =>
      constants.every(([name, value]) => (answer as Record<string, unknown>)[name] === value)
    const kind = kinds.find(fits)
    if (!kind) throw new Error('The answer has none of the shapes that its schema names.')
    return kind.serialise(answer)
  }
}
