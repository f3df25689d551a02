// Operations → an OpenAPI 3.1 document. Schemas with a title become components, named once.
import type { TObject, TSchema } from 'typebox'
import { type FaultCode, faults } from './faults.ts'
import { faultsOf, type Operation } from './operation.ts'

type Json = { [member: string]: unknown }

export interface Surface {
  title: string
  version: string
  description: string
  /** Where the operations' paths begin, e.g. `https://api.example.com/api/v1`. */
  serverUrl: string
  operations: readonly Operation[]
  /** What callers authenticate with: in the Authorization header, or in a cookie of that name. */
  credential: string
  cookie?: string
  /** Whether any web page may read the answers. */
  crossOrigin: boolean
  /** What the groups of operations are about, by the first part of their ids. */
  groups: { readonly [group: string]: string }
}

const headers = {
  RequestId: { description: 'Names this answer in the server’s log.', schema: { type: 'string' } },
  CrossOrigin: { description: 'Any web page may read the answer.', schema: { type: 'string', const: '*' } },
  ETag: {
    description:
      'Send it back in `If-None-Match`, and while nothing changed the answer is 304 without a body.',
    schema: { type: 'string' },
  },
  Link: {
    description:
      'Where the next page is, with `rel="next"`, as a reference relative to this server; absent on the last page.',
    schema: { type: 'string' },
  },
  RetryAfter: {
    description: 'Seconds to wait before the next try.',
    schema: { type: 'integer', minimum: 0 },
  },
  RateLimit: {
    description: 'What is left of the limit and when it is whole again. Sent where a limit is configured.',
    schema: { type: 'string', examples: ['"key";r=98;t=41'] },
  },
  RateLimitPolicy: {
    description: 'The limit in force. Sent where a limit is configured.',
    schema: { type: 'string', examples: ['"key";q=100;w=60'] },
  },
  Challenge: { description: 'The scheme to authenticate with.', schema: { type: 'string', const: 'Bearer' } },
} as const

export function describe(surface: Surface): Json {
  const schemas: Json = {}
  const usedHeaders: Json = {}
  const header = (name: keyof typeof headers) => {
    usedHeaders[name] = headers[name]
    return { $ref: `#/components/headers/${name}` }
  }
  const limits = () => ({ RateLimit: header('RateLimit'), 'RateLimit-Policy': header('RateLimitPolicy') })
  const faultHeaders: { [code in FaultCode]?: () => Json } = {
    unauthorized: () => (surface.cookie ? {} : { 'WWW-Authenticate': header('Challenge') }),
    rate_limited: () => ({ 'Retry-After': header('RetryAfter'), ...(!surface.cookie && limits()) }),
    unavailable: () => ({ 'Retry-After': header('RetryAfter') }),
  }
  const everyAnswer = {
    'X-Request-Id': header('RequestId'),
    ...(surface.crossOrigin && { 'Access-Control-Allow-Origin': header('CrossOrigin') }),
  }

  /** Copies a schema, moving every titled part of it into the components. */
  function named(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map(named)
    if (typeof schema !== 'object' || schema === null) return schema
    const { title, 'x-rule': _rule, ...rest } = schema as Json
    const copy = Object.fromEntries(Object.entries(rest).map(([member, value]) => [member, named(value)]))
    if (typeof title !== 'string') return copy
    schemas[title] = copy
    return { $ref: `#/components/schemas/${title}` }
  }

  const content = (schema: unknown, example: unknown) => ({
    'application/json': { schema: named(schema), example },
  })

  const parameters = (place: 'path' | 'query' | 'header', part: Operation['params']) =>
    Object.entries(part?.properties ?? {}).map(([name, schema]) => {
      const { description, ...rest } = schema as Json
      const required = place === 'path' || (part?.required as string[] | undefined)?.includes(name) === true
      return {
        name: place === 'header' ? headerName(name) : name,
        in: place,
        required,
        description,
        schema: named(rest),
      }
    })

  const paths: { [path: string]: Json } = {}
  const usedFaults = new Set<FaultCode>()
  for (const operation of surface.operations) {
    const { response } = operation
    const cacheable = operation.method === 'GET' && !response.asHeaders && !response.stream
    const given = [
      ...parameters('path', operation.params),
      ...parameters('query', operation.query),
      ...parameters('header', operation.headers),
    ]
    const responses: Json = {
      [response.status]: {
        description: response.description,
        headers: {
          ...everyAnswer,
          ...(cacheable && { ETag: header('ETag') }),
          ...(response.paged && { Link: header('Link') }),
          ...(operation.access === 'key' && limits()),
          ...(response.asHeaders && headersOf(response.schema)),
        },
        ...(response.stream && { content: streamContent(response.example) }),
        ...(!response.asHeaders &&
          !response.stream && { content: content(response.schema, response.example) }),
      },
      ...(cacheable && { 304: { $ref: '#/components/responses/not_modified' } }),
    }
    for (const code of faultsOf(operation)) {
      usedFaults.add(code)
      responses[faults[code].status] = { $ref: `#/components/responses/${code}` }
    }
    paths[operation.path] ??= {}
    Object.assign(paths[operation.path] as Json, {
      [operation.method.toLowerCase()]: {
        operationId: operation.id,
        summary: operation.summary,
        description: operation.description,
        tags: [groupOf(operation)],
        ...((operation.access === 'anyone' || operation.access === 'browser') && { security: [] }),
        ...(given.length > 0 && { parameters: given }),
        ...(operation.body && {
          requestBody: {
            required: false,
            content: content(operation.body, (operation.body as { examples?: unknown[] }).examples?.[0]),
          },
        }),
        responses,
      },
    })
  }

  const responses: Json = {
    not_modified: {
      description: 'Nothing changed since the answer with that ETag.',
      headers: { ...everyAnswer, ETag: header('ETag') },
    },
  }
  for (const code of usedFaults) {
    const { description, schema, example } = faults[code]
    responses[code] = {
      description,
      headers: { ...everyAnswer, ...faultHeaders[code]?.() },
      content: content(schema, example),
    }
  }

  return {
    openapi: '3.1.1',
    info: {
      title: surface.title,
      version: surface.version,
      description: surface.description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: surface.serverUrl }],
    security: [{ credential: [] }],
    tags: Object.entries(surface.groups).map(([name, description]) => ({ name, description })),
    paths,
    components: {
      securitySchemes: {
        credential: {
          ...(surface.cookie
            ? { type: 'apiKey', in: 'cookie', name: surface.cookie }
            : { type: 'http', scheme: 'bearer' }),
          description: surface.credential,
        },
      },
      headers: usedHeaders,
      responses,
      schemas,
    },
  }
}

/** OpenAPI 3.1 has no words for events: the text of the stream is all that can be described. */
const streamContent = (example: unknown) => ({ 'text/event-stream': { schema: { type: 'string' }, example } })

/** The members of an answer that is sent as headers. */
const headersOf = (schema: TSchema) =>
  Object.fromEntries(
    Object.entries((schema as TObject).properties).map(([name, property]) => {
      const { description, pattern, maxLength } = property as Json
      return [headerName(name), { description, schema: { type: 'string', pattern, maxLength } }]
    }),
  )

const groupOf = (operation: Operation) => operation.id.split('.')[0] as string

/** `idempotency-key` → `Idempotency-Key`, as people write it. */
const headerName = (name: string) => name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase())
