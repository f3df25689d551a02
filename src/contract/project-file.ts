// The project file adit.json: the tunnels of a project. For editors, a server serves the schema at
// /adit.schema.json, and docs/adit.schema.json is a copy.
import Type, { type Static } from 'typebox'
import { HOST_HEADER_CHARS_MAX, HOST_HEADER_PATTERN } from '../lib/net/host-header.ts'
import { OneOf } from './fields.ts'
import { DNS_LABEL_CHARS_MAX } from './limits.ts'
import { STRICT } from './operation.ts'

export const PROJECT_FILE = 'adit.json'
export const PROJECT_FILE_BYTES_MAX = 64 * 1024
export const PROJECT_TUNNELS_MAX = 20
const NETWORKS_MAX = 50
const MASKED_HEADERS_MAX = 50
const TEXT_MAX = 300

export const ProjectTunnel = Type.Object(
  {
    target: Type.Optional(
      Type.Unsafe<number | string>({
        type: ['integer', 'string'],
        minimum: 1,
        maximum: 65_535,
        maxLength: TEXT_MAX,
        description:
          'A port of this machine, or what `adit tunnel` takes, such as 192.168.1.20:8080, ' +
          'https://localhost:8443 or unix:app.sock.',
      }),
    ),
    serve: Type.Optional(
      Type.String({ minLength: 1, maxLength: TEXT_MAX, description: 'A folder whose files are served.' }),
    ),
    type: Type.Optional(OneOf(['http', 'tcp'])),
    basicAuth: Type.Optional(
      Type.String({
        maxLength: TEXT_MAX,
        pattern: '^[^:]+$',
        description: 'The user that visitors need. Its password is asked for; it is never in this file.',
        'x-rule':
          'must be a user name without a password: secrets are not allowed in this file; adit asks for it',
      }),
    ),
    allowIp: Type.Optional(
      Type.Array(Type.String({ maxLength: 50 }), {
        maxItems: NETWORKS_MAX,
        description: 'Addresses and networks that are allowed, in CIDR notation.',
      }),
    ),
    hostHeader: Type.Optional(
      Type.String({
        maxLength: HOST_HEADER_CHARS_MAX,
        pattern: HOST_HEADER_PATTERN,
        description:
          'The Host header that the local server gets: `rewrite` for that of the target, or a host.',
      }),
    ),
    insecure: Type.Optional(Type.Boolean({ description: 'Accept any certificate of an https:// target.' })),
    ca: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: TEXT_MAX,
        description: 'A file of certificates in PEM that an https:// target is verified with.',
      }),
    ),
    pool: Type.Optional(Type.Boolean({ description: 'Several clients share the name.' })),
    inspect: Type.Optional(
      Type.Boolean({ description: 'Requests are recorded, for `adit requests`. HTTP tunnels only.' }),
    ),
    maskHeader: Type.Optional(
      Type.Array(Type.String({ maxLength: TEXT_MAX }), {
        maxItems: MASKED_HEADERS_MAX,
        description: 'More headers whose values are masked in what is shown of recorded requests.',
      }),
    ),
  },
  STRICT,
)

const ProjectFile = Type.Object(
  {
    $schema: Type.Optional(Type.String({ maxLength: TEXT_MAX })),
    tunnels: Type.Record(
      Type.String({ pattern: `^[a-z0-9]([a-z0-9-]{0,${DNS_LABEL_CHARS_MAX - 2}}[a-z0-9])?$` }),
      ProjectTunnel,
      {
        ...STRICT,
        minProperties: 1,
        maxProperties: PROJECT_TUNNELS_MAX,
        description: 'The tunnels by name, which is the first part of the host name.',
      },
    ),
  },
  STRICT,
)

export type ProjectTunnel = Static<typeof ProjectTunnel>

/** The schema as a document, without the members that only our validation reads. */
export const projectFileSchema: string = JSON.stringify(
  { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'adit.json', ...ProjectFile },
  (name, value) => (name === 'x-rule' ? undefined : value),
)
