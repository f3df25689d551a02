// The account of the signed-in user: sessions, name, password and two-factor authentication.
import Type from 'typebox'
import { Email, Id, Instant, Slug, UserName, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'
import { Role } from './members.ts'
import { Archive } from './settings.ts'
import { Code, NewPassword, Password } from './sign-in.ts'

const Done = Type.Object({ done: Type.Literal(true) }, { title: 'Done' })
const done = { status: 200, description: 'Done.', schema: Done, example: { done: true } } as const

const PasswordConfirmation = Type.Object({ password: Password }, { title: 'PasswordConfirmation' })

const readSession = operation({
  id: 'session.read',
  method: 'GET',
  path: '/session',
  access: 'user',
  summary: 'Get the current session',
  description: 'Returns the signed-in user and their workspaces.',
  response: {
    status: 200,
    description: 'The signed-in user.',
    schema: Type.Object(
      {
        user: Type.Object(
          {
            id: Id,
            name: UserName,
            email: Email,
            hasPassword: Type.Boolean({
              description: 'False for users who sign in with an identity provider only.',
            }),
            hasTwoFactor: Type.Boolean(),
          },
          { title: 'Self' },
        ),
        canCreateWorkspaces: Type.Boolean({
          description: 'Whether users of this server create workspaces, or only its operator.',
        }),
        workspaces: Type.Array(
          Type.Object(
            {
              slug: Slug,
              name: WorkspaceName,
              role: Role,
              needsTwoFactor: Type.Boolean({
                description: 'Whether the user must set up two-factor authentication to use the workspace.',
              }),
              archive: Type.Unsafe<{ archivedAt: string; restorableUntil: string } | null>({
                type: ['object', 'null'],
                properties: Archive,
                required: ['archivedAt', 'restorableUntil'],
                description:
                  'Null unless the workspace is archived. One that cannot be restored is not listed.',
              }),
            },
            { title: 'Membership' },
          ),
        ),
      },
      { title: 'Session' },
    ),
    example: {
      user: {
        id: 'usr_01k9x2m4q7r8s9t0v1w2x3y4z5',
        name: 'Ann Example',
        email: 'ann@example.com',
        hasPassword: true,
        hasTwoFactor: false,
      },
      canCreateWorkspaces: false,
      workspaces: [{ slug: 'acme', name: 'Acme', role: 'owner', needsTwoFactor: false, archive: null }],
    },
  },
  faults: [],
})

const signOut = operation({
  id: 'session.end',
  method: 'POST',
  path: '/sign-out',
  access: 'user',
  endsAccess: true,
  summary: 'Sign out',
  description: 'Ends this session.',
  response: done,
  faults: [],
})

const signOutEverywhere = operation({
  id: 'session.end-all',
  method: 'DELETE',
  path: '/account/sessions',
  access: 'user',
  endsAccess: true,
  summary: 'Sign out everywhere',
  description: 'Ends all sessions of the user, including this one.',
  response: done,
  faults: [],
})

const rename = operation({
  id: 'account.rename',
  method: 'POST',
  path: '/account/name',
  access: 'user',
  summary: 'Change the display name',
  description: 'Existing audit log entries keep the old name.',
  body: Type.Object({ name: UserName }, { title: 'NewName' }),
  response: done,
  faults: [],
})

const changePassword = operation({
  id: 'account.password',
  method: 'POST',
  path: '/account/password',
  access: 'user',
  endsAccess: true,
  summary: 'Change the password',
  description: 'Ends all other sessions of the user.',
  body: Type.Object({ current: Password, password: NewPassword }, { title: 'PasswordChange' }),
  response: done,
  faults: ['rate_limited'],
})

const listSessions = operation({
  id: 'account.sessions',
  method: 'GET',
  path: '/account/sessions',
  access: 'user',
  summary: 'List sessions',
  description: 'Lists the sessions of the user, newest first.',
  response: {
    status: 200,
    description: 'The sessions.',
    schema: Type.Object(
      {
        sessions: Type.Array(
          Type.Object(
            {
              id: Id,
              isThis: Type.Boolean({ description: 'Whether it is the current session.' }),
              createdAt: Instant,
              expiresAt: Instant,
              from: Type.String({ description: 'IP address of the sign-in.' }),
              agent: Type.String({ description: 'User agent of the browser.' }),
            },
            { title: 'SessionFacts' },
          ),
        ),
      },
      { title: 'Sessions' },
    ),
    example: {
      sessions: [
        {
          id: 'ses_01k9x2m4q7r8s9t0v1w2x3y4z5',
          isThis: true,
          createdAt: '2026-11-15T09:30:00.000Z',
          expiresAt: '2026-11-16T09:30:00.000Z',
          from: '192.0.2.7',
          agent: 'Mozilla/5.0',
        },
      ],
    },
  },
  faults: [],
})

const endSession = operation({
  id: 'account.end-session',
  method: 'DELETE',
  path: '/account/sessions/{id}',
  access: 'user',
  endsAccess: true,
  summary: 'End a session',
  description: 'Signs the user out in that browser.',
  params: Type.Object({ id: Id }),
  response: done,
  faults: ['not_found'],
})

const beginTwoFactor = operation({
  id: 'two-factor.begin',
  method: 'POST',
  path: '/account/two-factor',
  access: 'user',
  summary: 'Begin the setup of two-factor authentication',
  description:
    'Returns the secret for an authenticator app, and recovery codes. Two-factor authentication is enabled ' +
    'once a first code is confirmed.',
  body: PasswordConfirmation,
  response: {
    status: 200,
    description: 'The secret and the recovery codes.',
    schema: Type.Object(
      {
        uri: Type.String({ description: '`otpauth:` URI for the QR code.' }),
        secret: Type.String({ description: 'The secret, for manual entry.' }),
        recoveryCodes: Type.Array(Type.String()),
      },
      { title: 'TwoFactorSetup' },
    ),
    example: { uri: 'otpauth://totp/…', secret: 'JBSWY3DPEHPK3PXP', recoveryCodes: ['abcde-12345'] },
    secret: true,
  },
  faults: ['rate_limited', 'conflict'],
})

const confirmTwoFactor = operation({
  id: 'two-factor.confirm',
  method: 'POST',
  path: '/account/two-factor/confirm',
  access: 'user',
  summary: 'Confirm the setup of two-factor authentication',
  description: 'Takes a first code of the authenticator app. From then on, signing in requires a code.',
  body: Type.Object({ code: Code }, { title: 'FirstCode' }),
  response: done,
  faults: ['rate_limited', 'conflict'],
})

const disableTwoFactor = operation({
  id: 'two-factor.disable',
  method: 'POST',
  path: '/account/two-factor/disable',
  access: 'user',
  summary: 'Disable two-factor authentication',
  description: 'Signing in requires the password only.',
  body: PasswordConfirmation,
  response: done,
  faults: ['rate_limited'],
})

export const accountOperations = [
  readSession,
  signOut,
  signOutEverywhere,
  rename,
  changePassword,
  listSessions,
  endSession,
  beginTwoFactor,
  confirmTwoFactor,
  disableTwoFactor,
] as const
