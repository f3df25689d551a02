// One's own account: who is signed in, the password, the second factor, and where else one is signed in.
import Type from 'typebox'
import { Email, Id, Instant, Slug, UserName, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'
import { Role } from './members.ts'
import { Code, NewPassword, Password } from './sign-in.ts'

const Done = Type.Object({ done: Type.Literal(true) }, { title: 'Done' })
const done = { status: 200, description: 'Done.', schema: Done, example: { done: true } } as const

const readSession = operation({
  id: 'session.read',
  method: 'GET',
  path: '/session',
  access: 'user',
  summary: 'Who is signed in',
  description: 'The person, and the workspaces that the person belongs to.',
  response: {
    status: 200,
    description: 'The person.',
    schema: Type.Object(
      {
        person: Type.Object(
          {
            id: Id,
            name: UserName,
            email: Email,
            hasPassword: Type.Boolean({ description: 'False for one who only signs in elsewhere.' }),
            hasSecondFactor: Type.Boolean(),
          },
          { title: 'Self' },
        ),
        workspaces: Type.Array(
          Type.Object({ slug: Slug, name: WorkspaceName, role: Role }, { title: 'Membership' }),
        ),
      },
      { title: 'Session' },
    ),
    example: {
      person: {
        id: 'usr_01k9x2m4q7r8s9t0v1w2x3y4z5',
        name: 'Ann Example',
        email: 'ann@example.com',
        hasPassword: true,
        hasSecondFactor: false,
      },
      workspaces: [{ slug: 'acme', name: 'Acme', role: 'owner' }],
    },
  },
  faults: [],
})

const signOut = operation({
  id: 'session.end',
  method: 'POST',
  path: '/sign-out',
  access: 'user',
  summary: 'Sign out here',
  description: 'Ends this session.',
  response: done,
  faults: [],
})

const signOutEverywhere = operation({
  id: 'session.end-all',
  method: 'POST',
  path: '/sign-out/everywhere',
  access: 'user',
  summary: 'Sign out everywhere',
  description: 'Ends every session of this person, this one too.',
  response: done,
  faults: [],
})

const rename = operation({
  id: 'account.rename',
  method: 'POST',
  path: '/account/name',
  access: 'user',
  summary: 'Change one’s name',
  description: 'What the audit log has written stays as it was.',
  body: Type.Object({ name: UserName }, { title: 'NewName' }),
  response: done,
  faults: [],
})

const changePassword = operation({
  id: 'account.password',
  method: 'POST',
  path: '/account/password',
  access: 'user',
  summary: 'Change the password',
  description: 'Ends every other session of this person.',
  body: Type.Object({ current: Password, password: NewPassword }, { title: 'PasswordChange' }),
  response: done,
  faults: ['rate_limited'],
})

const listSessions = operation({
  id: 'account.sessions',
  method: 'GET',
  path: '/account/sessions',
  access: 'user',
  summary: 'List one’s sessions',
  description: 'Where this person is signed in, the latest first.',
  response: {
    status: 200,
    description: 'The sessions.',
    schema: Type.Object(
      {
        sessions: Type.Array(
          Type.Object(
            {
              id: Id,
              isThis: Type.Boolean({ description: 'Whether it is the one that asks.' }),
              createdAt: Instant,
              expiresAt: Instant,
              from: Type.String({ description: 'The network address it was begun from.' }),
              agent: Type.String({ description: 'What the browser calls itself.' }),
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
  summary: 'End one of one’s sessions',
  description: 'It is refused from its next request on.',
  params: Type.Object({ id: Id }),
  response: done,
  faults: ['not_found'],
})

const beginSecondFactor = operation({
  id: 'second-factor.begin',
  method: 'POST',
  path: '/account/second-factor',
  access: 'user',
  summary: 'Begin to set up a second factor',
  description:
    'Answers what an authenticator needs, and codes for the day it is lost. Nothing is asked for at sign-in before the ' +
    'first code was confirmed.',
  body: Type.Object({ password: Password }, { title: 'PasswordAgain' }),
  response: {
    status: 200,
    description: 'For the authenticator.',
    schema: Type.Object(
      {
        uri: Type.String({ description: 'For an authenticator, as an otpauth address.' }),
        secret: Type.String({ description: 'The same, to be typed in.' }),
        recoveryCodes: Type.Array(Type.String()),
      },
      { title: 'SecondFactor' },
    ),
    example: { uri: 'otpauth://totp/…', secret: 'JBSWY3DPEHPK3PXP', recoveryCodes: ['abcde-12345'] },
    secret: true,
  },
  faults: ['rate_limited', 'conflict'],
})

const confirmSecondFactor = operation({
  id: 'second-factor.confirm',
  method: 'POST',
  path: '/account/second-factor/confirm',
  access: 'user',
  summary: 'Confirm the second factor',
  description: 'With a first code from the authenticator. From now on signing in asks for one.',
  body: Type.Object({ code: Code }, { title: 'FirstCode' }),
  response: done,
  faults: ['rate_limited', 'conflict'],
})

const removeSecondFactor = operation({
  id: 'second-factor.remove',
  method: 'POST',
  path: '/account/second-factor/remove',
  access: 'user',
  summary: 'Remove the second factor',
  description: 'The password is enough again.',
  body: Type.Object({ password: Password }, { title: 'PasswordOnceMore' }),
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
  beginSecondFactor,
  confirmSecondFactor,
  removeSecondFactor,
] as const
