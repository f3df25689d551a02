// Generates an OpenAPI 3.1 document from operations. Schemas with a title become named components.
import { isDeepStrictEqual } from 'node:util'
import type { TObject, TSchema } from 'typebox'
import { documentedSchema } from './documented-schema.ts'
import { type EventType, eventBody, events, eventTypes } from './events.ts'
import { type FaultCode, faults, oauthError } from './faults.ts'
import { type Access, FORM_TYPE, listFaults, type Operation } from './operation.ts'

type Json = { [member: string]: unknown }

/** The parts of an OpenAPI document besides its operations. */
export interface ApiDocument {
  title: string
  version: string
  description: string
  /**
   * Describes the credential: a bearer token, or a cookie of that name, which has the prefix `__Host-` with
   * https. Absent if there is none.
   */
  credential?: string
  cookie?: string
  /** Whether CORS allows any origin. */
  crossOrigin: boolean
  /** Descriptions of the groups of operations, by the first part of the operation id. */
  groups: { readonly [group: string]: string }
  /** Whether the document has the requests that webhooks send. */
  hasWebhooks?: true
}

interface DescribedApi {
  readonly prefix: string
  readonly operations: readonly Operation[]
  readonly document: ApiDocument
}

const headers = {
  RequestId: { description: 'Identifies the request in the server’s log.', schema: { type: 'string' } },
  CrossOrigin: { description: 'Any origin may read the response.', schema: { type: 'string', const: '*' } },
  ETag: {
    description: 'Send it in `If-None-Match` to get 304 without a body while nothing has changed.',
    schema: { type: 'string' },
  },
  Link: {
    description: 'URL of the next page, relative to this server, with `rel="next"`; absent on the last page.',
    schema: { type: 'string' },
  },
  RetryAfter: {
    description: 'Seconds to wait before retrying.',
    schema: documentedSchema({ type: 'integer', minimum: 0 }),
  },
  RateLimit: {
    description: 'Remaining requests and seconds until the limit resets. Sent if a rate limit is configured.',
    schema: { type: 'string', examples: ['"key";r=98;t=41'] },
  },
  RateLimitPolicy: {
    description: 'Requests per window and its length in seconds. Sent if a rate limit is configured.',
    schema: { type: 'string', examples: ['"key";q=100;w=60'] },
  },
  Challenge: { description: 'The authentication scheme.', schema: { type: 'string', const: 'Bearer' } },
} as const

const withoutCredential: ReadonlySet<Access> = new Set(['anyone', 'device', 'browser'])

/** `baseUrl`: the public URL of the server; empty if it is not configured. */
export function describe({ prefix, operations, document: api }: DescribedApi, baseUrl: string): Json {
  const schemas: Json = {}
  const usedHeaders: Json = {}
  const header = (name: keyof typeof headers) => {
    usedHeaders[name] = headers[name]
    return { $ref: `#/components/headers/${name}` }
  }
  const limits = () => ({ RateLimit: header('RateLimit'), 'RateLimit-Policy': header('RateLimitPolicy') })
  const faultHeaders: { [code in FaultCode]?: () => Json } = {
    unauthorized: () => (api.cookie ? {} : { 'WWW-Authenticate': header('Challenge') }),
    rate_limited: () => ({
      'Retry-After': header('RetryAfter'),
      ...(api.credential && !api.cookie && limits()),
    }),
    unavailable: () => ({ 'Retry-After': header('RetryAfter') }),
  }
  const commonHeaders = {
    'X-Request-Id': header('RequestId'),
    ...(api.crossOrigin && { 'Access-Control-Allow-Origin': header('CrossOrigin') }),
  }

  /** Copies a schema and moves every titled part of it into the components. */
  function named(schema: unknown, use: 'request' | 'response'): unknown {
    if (Array.isArray(schema)) return schema.map((each) => named(each, use))
    if (typeof schema !== 'object' || schema === null) return schema
    const { title, ...members } = documentedSchema(schema as Json)
    // Left out, because some tools count UTF-16 units, and would reject a valid label of 80 emoji.
    if (use === 'response') delete members.maxLength
    const copy = Object.fromEntries(
      Object.entries(members).map(([member, value]) => [member, named(value, use)]),
    )
    if (typeof title !== 'string') return copy
    schemas[title] ??= copy
    if (!isDeepStrictEqual(schemas[title], copy)) throw new Error(`Two schemas have the title ${title}.`)
    return { $ref: `#/components/schemas/${title}` }
  }

  const content = (schema: unknown, example: unknown) => ({
    'application/json': { schema: named(schema, 'response'), example },
  })

  const requestContent = ({ body, oauth }: Operation) => ({
    [oauth === 'form' ? FORM_TYPE : 'application/json']: {
      schema: named(body, 'request'),
      example: (body as { examples?: unknown[] }).examples?.[0],
    },
  })

  /** Operations of OAuth have errors in the form of OAuth. */
  const oauthResponse = (code: FaultCode, { response: { rejection } }: Operation) => {
    const { schema, example } = (code === 'invalid_request' && rejection) || oauthError(code)
    return {
      description: faults[code].description,
      headers: { ...commonHeaders, ...faultHeaders[code]?.() },
      content: content(schema, example),
    }
  }

  const parameters = (location: 'path' | 'query' | 'header', part: Operation['params']) =>
    Object.entries(part?.properties ?? {}).map(([name, schema]) => {
      const { description, ...rest } = schema as Json
      const required =
        location === 'path' || (part?.required as string[] | undefined)?.includes(name) === true
      return {
        name: location === 'header' ? headerName(name) : name,
        in: location,
        required,
        description,
        schema: named(rest, 'request'),
      }
    })

  const paths: { [path: string]: Json } = {}
  const usedFaults = new Set<FaultCode>()
  for (const operation of operations) {
    const { response } = operation
    const cacheable = operation.method === 'GET' && !response.asHeaders && !response.stream && !response.file
    const allParameters = [
      ...parameters('path', operation.params),
      ...parameters('query', operation.query),
      ...parameters('header', operation.headers),
    ]
    const responses: Json = {
      [response.status]: {
        description: response.description ?? 'Success.',
        headers: {
          ...commonHeaders,
          ...(cacheable && { ETag: header('ETag') }),
          ...(response.paged && { Link: header('Link') }),
          ...(operation.access === 'key' && limits()),
          ...(response.asHeaders && responseHeaders(response.schema)),
        },
        ...(response.stream && { content: streamContent(response.example) }),
        ...(response.file && {
          content: { 'text/plain': { schema: response.schema, example: response.example } },
        }),
        ...(!response.asHeaders &&
          !response.stream &&
          !response.file && { content: content(response.schema, response.example) }),
      },
      ...(cacheable && { 304: { $ref: '#/components/responses/not_modified' } }),
    }
    for (const code of listFaults(operation)) {
      const { status } = faults[code]
      if (operation.oauth) responses[status] = oauthResponse(code, operation)
      else {
        usedFaults.add(code)
        responses[status] = { $ref: `#/components/responses/${code}` }
      }
    }
    paths[operation.path] ??= {}
    Object.assign(paths[operation.path] as Json, {
      [operation.method.toLowerCase()]: {
        operationId: operation.id,
        summary: operation.summary,
        description: operation.description ?? `${operation.summary}.`,
        tags: [operationGroup(operation)],
        ...(withoutCredential.has(operation.access) && { security: [] }),
        ...(allParameters.length > 0 && { parameters: allParameters }),
        ...(operation.body && {
          requestBody: { required: hasRequired(operation.body), content: requestContent(operation) },
        }),
        responses,
      },
    })
  }

  const describeWebhook = (type: EventType) => {
    const { summary, example } = events[type]
    const body = { type, timestamp: '2026-11-15T10:02:11.000Z', workspace: 'acme', data: example }
    return { post: webhookRequest(type, summary, content(eventBody(type), body)) }
  }
  const webhooks =
    api.hasWebhooks && Object.fromEntries(eventTypes.map((type) => [type, describeWebhook(type)]))

  const responses: Json = {
    not_modified: {
      description: 'Nothing has changed since the response with that ETag.',
      headers: { ...commonHeaders, ETag: header('ETag') },
    },
  }
  for (const code of usedFaults) {
    const { description, schema, example } = faults[code]
    responses[code] = {
      description,
      headers: { ...commonHeaders, ...faultHeaders[code]?.() },
      content: content(schema, example),
    }
  }

  return {
    openapi: '3.1.1',
    info: {
      title: api.title,
      version: api.version,
      description: api.description,
      contact: { name: 'The operator of this server', ...(baseUrl && { url: baseUrl }) },
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: baseUrl + prefix }],
    ...(api.credential && { security: [{ credential: [] }] }),
    tags: Object.entries(api.groups).map(([name, description]) => ({ name, description })),
    paths,
    ...(webhooks && { webhooks }),
    components: {
      ...(api.credential && {
        securitySchemes: {
          credential: {
            ...(api.cookie
              ? { type: 'apiKey', in: 'cookie', name: cookieName(api.cookie, baseUrl) }
              : { type: 'http', scheme: 'bearer' }),
            description: api.credential,
          },
        },
      }),
      headers: usedHeaders,
      responses,
      schemas,
    },
  }
}

const cookieName = (name: string, baseUrl: string) => (baseUrl.startsWith('https:') ? `__Host-${name}` : name)

const webhookHeaders = {
  'webhook-id': 'Id of the event.',
  'webhook-timestamp': 'When it was sent, in seconds since 1970.',
  'webhook-signature':
    'Signatures `v1,<base64>`, separated by spaces: two during the rotation of the secret.',
}

const webhookRequest = (type: EventType, summary: string, content: Json): Json => ({
  operationId: `event.${type}`,
  summary,
  description: 'Sent to the webhook endpoints of the workspace, by Standard Webhooks.',
  tags: ['webhooks'],
  security: [],
  parameters: Object.entries(webhookHeaders).map(([name, description]) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  })),
  requestBody: { required: true, content },
  responses: {
    '2XX': { description: 'The event has arrived.' },
    default: { description: 'It is sent again later. 410 disables the endpoint.' },
  },
})

/** OpenAPI 3.1 cannot describe events, so the stream is described as text. */
const streamContent = (example: unknown) => ({ 'text/event-stream': { schema: { type: 'string' }, example } })

/** Response headers of an operation whose result is sent as headers. */
const responseHeaders = (schema: TSchema) =>
  Object.fromEntries(
    Object.entries((schema as TObject).properties).map(([name, property]) => {
      const { description, pattern, maxLength } = documentedSchema(property as Json)
      return [headerName(name), { description, schema: { type: 'string', pattern, maxLength } }]
    }),
  )

const hasRequired = ({ required }: TSchema & { required?: string[] }) => (required?.length ?? 0) > 0

const operationGroup = (operation: Operation) => operation.id.split('.')[0] as string

/** `idempotency-key` → `Idempotency-Key`. */
const headerName = (name: string) => name.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase())
