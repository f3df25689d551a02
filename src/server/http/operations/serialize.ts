// Serializes responses by the schema of the operation; undeclared properties are not sent.
import stringifier from 'fast-json-stringify'
import type { TSchema } from 'typebox'

export type Serialize = (result: unknown) => string

type Union = TSchema & { anyOf: TSchema[] }
type Shape = TSchema & { properties?: Record<string, object> }

/** Compiled on first use: most serializers are not needed in the first second of a server. */
export function serializerFor(schema: TSchema): Serialize {
  let serialize: Serialize | undefined
  return (result) => {
    serialize ??=
      'anyOf' in schema ? byConstants((schema as Union).anyOf) : (stringifier(schema) as Serialize)
    return serialize(result)
  }
}

/** Uses the shape whose constants match. The library would validate against each of them. */
function byConstants(shapes: Shape[]): Serialize {
  const variants = shapes.map((shape) => ({
    constants: Object.entries(shape.properties ?? {}).flatMap(([name, property]) =>
      'const' in property ? [[name, property.const] as const] : [],
    ),
    serialize: serializerFor(shape),
  }))
  return (result) => {
    const matches = ({ constants }: (typeof variants)[number]) =>
      constants.every(([name, value]) => (result as Record<string, unknown>)[name] === value)
    const variant = variants.find(matches)
    if (!variant) throw new Error('The result matches none of the shapes in its schema.')
    return variant.serialize(result)
  }
}
