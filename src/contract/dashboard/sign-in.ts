// Getting in: by password and second factor, by another identity provider, or by a link that somebody was given.
import Type from 'typebox'
import { Email, Slug, UserName, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'

export const PASSWORD_CHARS = { least: 8, most: 128 } as const

/** Any text that was once taken for a password; the rules for new ones are `NewPassword`'s. */
export const Password = Type.String({ maxLength: 1_000, description: 'The password.' })

export const NewPassword = Type.String({
  minLength: PASSWORD_CHARS.least,
  maxLength: PASSWORD_CHARS.most,
  description: '8 to 128 characters; not one of those that everybody uses.',
})

export const Code = Type.String({
  pattern: '^[0-9A-Za-z -]{6,20}$',
  description: 'Six digits from the authenticator, or one of the recovery codes.',
  examples: ['492039'],
  'x-rule': 'must be the six digits of an authenticator, or a recovery code',
})

const Link = Type.String({
  pattern: '^[\\w-]{20,100}$',
  description: 'What follows `#` in the address of the link.',
  'x-rule': 'must be what follows # in a link of this server',
})

/** After the first step of signing in. */
const Next = Type.Object(
  {
    next: Type.Unsafe<'signed_in' | 'code'>({
      type: 'string',
      enum: ['signed_in', 'code'],
      description: 'Whether that was all, or the code of the second factor is still to come.',
    }),
  },
  { title: 'SignInStep' },
)

const readOptions = operation({
  id: 'sign-in.options',
  method: 'GET',
  path: '/sign-in',
  access: 'browser',
  summary: 'How to sign in',
  description: 'Which ways to sign in this server offers beside a password.',
  response: {
    status: 200,
    description: 'The ways.',
    schema: Type.Object(
      {
        sso: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Host name of the identity provider; null where none is configured.',
        }),
        resetByMail: Type.Boolean({ description: 'Whether a forgotten password can be reset by mail.' }),
      },
      { title: 'SignInOptions' },
    ),
    example: { sso: 'id.example.com', resetByMail: true },
  },
  faults: [],
})

const signIn = operation({
  id: 'sign-in.password',
  method: 'POST',
  path: '/sign-in',
  access: 'browser',
  summary: 'Sign in',
  description:
    'By e-mail and password. Whether an address is known here cannot be told from the answer. Failed attempts are ' +
    'limited, for each address and for each network.',
  body: Type.Object({ email: Email, password: Password }, { title: 'Credentials' }),
  response: {
    status: 200,
    description: 'The password is right.',
    schema: Next,
    example: { next: 'signed_in' },
  },
  faults: ['unauthorized', 'rate_limited'],
})

const signInCode = operation({
  id: 'sign-in.code',
  method: 'POST',
  path: '/sign-in/code',
  access: 'browser',
  summary: 'Give the code of the second factor',
  description: 'After the password, within ten minutes. A code works once.',
  body: Type.Object({ code: Code }, { title: 'SecondFactorCode' }),
  response: { status: 200, description: 'Signed in.', schema: Next, example: { next: 'signed_in' } },
  faults: ['unauthorized', 'rate_limited'],
})

const beginSso = operation({
  id: 'sign-in.sso',
  method: 'POST',
  path: '/sign-in/sso',
  access: 'browser',
  summary: 'Begin to sign in at the identity provider',
  description: 'Answers where to go on. 404 where no provider is configured.',
  response: {
    status: 200,
    description: 'Where to go on.',
    schema: Type.Object({ url: Type.String() }, { title: 'SsoStart' }),
    example: { url: 'https://id.example.com/auth?…' },
  },
  faults: ['not_found', 'rate_limited'],
})

const Returned = Type.Optional(Type.String({ maxLength: 4_000 }))

const returnFromSso = operation({
  id: 'sign-in.return',
  method: 'GET',
  path: '/sign-in/sso/return',
  access: 'browser',
  summary: 'Come back from the identity provider',
  description: 'The provider sends the browser here; it is sent on to the dashboard, or back to sign in.',
  query: Type.Object({
    code: Returned,
    state: Returned,
    error: Returned,
    error_description: Returned,
    iss: Returned,
  }),
  response: {
    status: 302,
    description: 'On to the page.',
    schema: Type.Object({ location: Type.String() }),
    example: { location: '/' },
    asHeaders: true,
  },
  faults: ['not_found', 'rate_limited'],
})

const forgotPassword = operation({
  id: 'sign-in.forgotten',
  method: 'POST',
  path: '/sign-in/forgotten',
  access: 'browser',
  summary: 'Ask for a link to reset the password',
  description:
    'Sends one by mail if the address is known here; the answer is the same if not. 404 where mail is not configured.',
  body: Type.Object({ email: Email }, { title: 'ForgottenPassword' }),
  response: {
    status: 200,
    description: 'If the address is known, a mail is on its way.',
    schema: Type.Object({ asked: Type.Literal(true) }, { title: 'ResetAsked' }),
    example: { asked: true },
  },
  faults: ['not_found', 'rate_limited'],
})

const readLink = operation({
  id: 'links.read',
  method: 'POST',
  path: '/links/read',
  access: 'browser',
  summary: 'What a link is for',
  description: 'Tells it without using the link up. 404 once it was used, revoked or is older than 24 hours.',
  body: Type.Object({ link: Link }, { title: 'Link' }),
  response: {
    status: 200,
    description: 'What it is for.',
    schema: Type.Object(
      {
        purpose: Type.Unsafe<'join' | 'reset'>({
          type: 'string',
          enum: ['join', 'reset'],
          description: 'To join a workspace, or to set another password.',
        }),
        email: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'Whom it is for; null where whoever opens it says so.',
        }),
        workspace: Type.Unsafe<{ slug: string; name: string } | null>({
          type: ['object', 'null'],
          properties: { slug: Slug, name: WorkspaceName },
          required: ['slug', 'name'],
        }),
        role: Type.Unsafe<'member' | 'admin' | 'owner' | null>({ type: ['string', 'null'] }),
        step: Type.Unsafe<'choose' | 'sign_in' | 'accept'>({
          type: 'string',
          enum: ['choose', 'sign_in', 'accept'],
          description:
            'Choose a password and, as a new person, a name; sign in first, because there is an account; or just accept.',
        }),
        isNew: Type.Boolean({ description: 'Whether there is no account yet, so that a name is asked for.' }),
      },
      { title: 'LinkFacts' },
    ),
    example: {
      purpose: 'join',
      email: 'bob@example.com',
      workspace: { slug: 'acme', name: 'Acme' },
      role: 'member',
      step: 'choose',
      isNew: true,
    },
  },
  faults: ['not_found'],
})

const useLink = operation({
  id: 'links.use',
  method: 'POST',
  path: '/links/use',
  access: 'browser',
  summary: 'Use a link',
  description:
    'Joins the workspace or sets the password, and signs in. A new person gives a name and a password, and an address ' +
    'where the link names none; a reset takes a password; somebody who has an account accepts while signed in.',
  body: Type.Object(
    {
      link: Link,
      email: Type.Optional(Email),
      name: Type.Optional(UserName),
      password: Type.Optional(NewPassword),
    },
    { title: 'LinkUse' },
  ),
  response: { status: 200, description: 'Done.', schema: Next, example: { next: 'signed_in' } },
  faults: ['not_found', 'unauthorized', 'conflict', 'rate_limited'],
})

export const signInOperations = [
  readOptions,
  signIn,
  signInCode,
  beginSso,
  returnFromSso,
  forgotPassword,
  readLink,
  useLink,
] as const
