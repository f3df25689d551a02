// The edges' side: is this key good and whose is it; here is what was used.
import Type from 'typebox'
import { readDescription } from './description.ts'
import { HostName, Slug, TokenId, WorkspaceName } from './fields.ts'
import { operation } from './operation.ts'
import { reportUsage } from './reports.ts'

export const EDGE_PREFIX = '/edge/v1'

const exampleKeyId = 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5'

const GoodKey = Type.Object(
  {
    valid: Type.Literal(true),
    keyId: TokenId,
    workspace: Type.Object(
      {
        slug: Slug,
        name: WorkspaceName,
        provisioned: Type.Boolean({ description: 'Whether tunnels may be opened for this workspace.' }),
        tunnelBase: HostName({ description: 'Host name under which the workspace’s tunnels live.' }),
      },
      { title: 'EdgeWorkspace' },
    ),
  },
  { title: 'GoodKey' },
)

const BadKey = Type.Object(
  {
    valid: Type.Literal(false),
    reason: Type.Unsafe<'unknown' | 'revoked'>({
      type: 'string',
      enum: ['unknown', 'revoked'],
      description: 'Whether it never was a key here, or is one no more.',
    }),
  },
  { title: 'BadKey' },
)

export const verifyKey = operation({
  id: 'keys.verify',
  method: 'POST',
  path: '/keys/verify',
  access: 'edge',
  summary: 'Verify an API key',
  description:
    'Tells whether a key is good and whose it is. A key that is not good is an answer, not an error. Asking counts as ' +
    'a use of the key.',
  body: Type.Object(
    {
      key: Type.String({
        maxLength: 200,
        description: 'The raw API key that somebody presented to the edge.',
      }),
    },
    { title: 'KeyToVerify', examples: [{ key: 'adit_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE' }] },
  ),
  answer: {
    status: 200,
    description: 'What the key is.',
    schema: Type.Union([GoodKey, BadKey], { title: 'KeyVerdict' }),
    example: {
      valid: true,
      keyId: exampleKeyId,
      workspace: { slug: 'acme', name: 'Acme', provisioned: true, tunnelBase: 'acme.tunnels.example.com' },
    },
  },
  faults: [],
})

export const authorizeVisitor = operation({
  id: 'visitors.authorize',
  method: 'GET',
  path: '/authorize',
  access: 'edge',
  summary: 'Authorise a visitor',
  description:
    'For reverse proxies that ask before they forward (nginx `auth_request`, Caddy `forward_auth`, Traefik). The ' +
    'visitor’s own `Authorization: Bearer <API key>` is passed on, and the edge’s credential comes in `X-Adit-Edge`. ' +
    'A good key is 204, anything else 401.',
  answer: {
    status: 204,
    description: 'The key is good; the headers tell whose it is.',
    schema: Type.Object({ 'x-adit-workspace': Slug, 'x-adit-key-id': TokenId }),
    example: { 'x-adit-workspace': 'acme', 'x-adit-key-id': exampleKeyId },
    asHeaders: true,
  },
  faults: [],
})

export const edgeOperations = [verifyKey, authorizeVisitor, reportUsage, readDescription] as const
