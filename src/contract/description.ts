// The operation that serves the OpenAPI document of an API.
import Type from 'typebox'
import { operation } from './operation.ts'

/** Every API serves its own document. */
export const readDescription = operation({
  id: 'description.read',
  method: 'GET',
  path: '/openapi.json',
  access: 'anyone',
  summary: 'Get the OpenAPI document',
  description:
    'Returns the OpenAPI 3.1 document of the API that this server runs. Requires no authentication.',
  response: {
    status: 200,
    description: 'The OpenAPI document.',
    schema: Type.Unsafe<object>({ type: 'object', additionalProperties: true, title: 'OpenApiDocument' }),
    example: { openapi: '3.1.1', info: { title: 'Adit API', version: '1' }, paths: {} },
  },
})
