// The sign-in of agents (OAuth 2.1): clients register or have a metadata document, a signed-in user approves
// on the page /authorize, and the code is exchanged for a key that is valid at /mcp only.
import Type from 'typebox'
import { readDescription } from './description.ts'
import { DEVICE_GRANT, grantRejection } from './device.ts'
import { Label, OneOf, Slug, TokenId, UserName } from './fields.ts'
import { operation } from './operation.ts'

export const CODE_GRANT = 'authorization_code'

const REDIRECT_URI = 'https://agent.example.com/callback'

const register = operation({
  id: 'oauth.register',
  method: 'POST',
  path: '/register',
  access: 'device',
  audit: { none: 'Nothing is stored: the client_id contains the registration.' },
  summary: 'Register a client',
  description:
    'Dynamic client registration (RFC 7591), for agents without a metadata document. Nothing is stored: the ' +
    '`client_id` contains the registration, and does not expire. Other members of the metadata are ignored.',
  oauth: 'json',
  body: Type.Object(
    {
      client_name: Type.Optional(
        Type.String({
          maxLength: 200,
          description: 'Shown to the user, who is told that it is not verified.',
        }),
      ),
      redirect_uris: Type.Array(Type.String({ maxLength: 500 }), {
        maxItems: 10,
        description:
          'At least one. Each is an https URL, an http URL of a loopback host, or has the private-use scheme of ' +
          'an app, with a period. Together they may have at most 2,000 characters.',
      }),
    },
    { title: 'ClientRegistration', examples: [{ client_name: 'Example', redirect_uris: [REDIRECT_URI] }] },
  ),
  response: {
    status: 201,
    description: 'The client.',
    schema: Type.Object(
      {
        client_id: Type.String(),
        client_name: Type.String(),
        redirect_uris: Type.Array(Type.String()),
        token_endpoint_auth_method: Type.Literal('none'),
        grant_types: Type.Array(Type.String()),
        response_types: Type.Array(Type.String()),
      },
      { title: 'RegisteredClient' },
    ),
    example: {
      client_id: 'adit_client_EXAMPLEexample',
      client_name: 'Example',
      redirect_uris: [REDIRECT_URI],
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code'],
      response_types: ['code'],
    },
    secret: true,
    rejection: {
      schema: Type.Object(
        {
          error: OneOf(['invalid_redirect_uri']),
          error_description: Type.String({ description: 'Human-readable explanation.' }),
        },
        { title: 'RegistrationError' },
      ),
      example: {
        error: 'invalid_redirect_uri',
        error_description:
          'At least one of redirect_uris is required. Each must be an https URL, or an http URL of localhost.',
      },
    },
  },
})

const OptionalText = (maxLength: number, description: string) =>
  Type.Optional(Type.String({ maxLength, description }))

const exchange = operation({
  id: 'oauth.token',
  method: 'POST',
  path: '/token',
  access: 'device',
  audit: ['key.created', 'key.revoked', 'device.failed'],
  summary: 'Exchange a code for a key',
  description:
    'Exchanges an authorization code for a key, which is valid at `/mcp` only. A second exchange of the same ' +
    'code revokes the key. There are no refresh tokens. The device code of `POST /device/authorize` is ' +
    'accepted as well, and returns what `POST /device/token` returns.',
  oauth: 'form',
  body: Type.Object(
    {
      grant_type: Type.String({
        maxLength: 200,
        description: `\`${CODE_GRANT}\` or \`${DEVICE_GRANT}\` (RFC 8628).`,
      }),
      code: OptionalText(4_000, 'From the redirect of the page `/authorize`. It is valid for 60 seconds.'),
      client_id: OptionalText(4_000, 'As in the authorization request.'),
      redirect_uri: OptionalText(500, 'As in the authorization request.'),
      code_verifier: Type.Optional(
        Type.String({
          pattern: '^[A-Za-z0-9._~-]{43,128}$',
          description: 'The text whose SHA-256 is the `code_challenge`.',
          'x-rule': 'must have 43 to 128 letters, digits, dots, underscores, tildes or hyphens',
        }),
      ),
      resource: OptionalText(1_000, 'The URL of `/mcp`.'),
      device_code: OptionalText(200, 'From `POST /device/authorize`.'),
    },
    {
      title: 'TokenRequest',
      examples: [
        {
          grant_type: 'authorization_code',
          code: 'EXAMPLEexample',
          client_id: 'https://agent.example.com/client.json',
          redirect_uri: REDIRECT_URI,
          code_verifier: 'EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
          resource: 'https://adit.example.com/mcp',
        },
      ],
    },
  ),
  response: {
    status: 200,
    description: 'The key.',
    schema: Type.Object(
      {
        access_token: Type.String({ description: 'The key.' }),
        token_type: Type.Literal('Bearer'),
        expires_in: Type.Optional(Type.Integer({ description: 'Lifetime of the key in seconds.' })),
        scope: Type.Optional(
          OneOf(
            ['mcp', 'mcp manage-keys'],
            'Has `manage-keys` if the user has allowed the agent to manage API keys.',
          ),
        ),
        key_id: Type.Optional(TokenId),
        label: Type.Optional(Label),
        workspace: Type.Optional(Slug),
        approved_by: Type.Optional(UserName),
      },
      { title: 'AgentKey' },
    ),
    example: {
      access_token: 'adit_agent_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE',
      token_type: 'Bearer',
      expires_in: 2_592_000,
      scope: 'mcp',
    },
    secret: true,
    rejection: grantRejection,
  },
})

export const oauthOperations = [register, exchange, readDescription] as const
