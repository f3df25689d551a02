// The API's description of itself.
import Type from 'typebox'
import { operation } from './operation.ts'

/** Every surface describes itself in the same way. */
export const readDescription = operation({
  id: 'description.read',
  method: 'GET',
  path: '/openapi.json',
  access: 'anyone',
  summary: 'Read this description',
  description: 'Returns the OpenAPI 3.1 document of the routes that this deployment serves. Needs no key.',
  response: {
    status: 200,
    description: 'The OpenAPI document.',
    schema: Type.Unsafe<object>({ type: 'object', additionalProperties: true, title: 'OpenApiDocument' }),
    example: { openapi: '3.1.1', info: { title: 'Adit control plane', version: '1' }, paths: {} },
  },
  faults: [],
})
