// Entries of the audit log as sentences.
import type { Output } from '../api.ts'
import { operatorName } from '../format.ts'

export type Entry = Output<'audit.list'>['entries'][number]

/** Who, did what, to whom or what, and what more; the last two may be empty. */
export interface Sentence {
  /** Empty where it is not known who it was. */
  actor: string
  verb: string
  object: string
  rest?: string
}

export function describeEntry(entry: Entry): Sentence {
  const { actor, subject, action } = entry
  const isSelf = actor.id === subject.id
  const key = subject.name ? `“${subject.name}”` : subject.id
  const person = subject.name || subject.id
  const says = (verb: string, object = ''): Sentence => ({ actor: nameOf(actor), verb, object })
  const madeInto = (role: string): Sentence =>
    isSelf ? says(`became ${role} by their own choice`) : { ...says('made', person), rest: role }
  switch (action) {
    case 'workspace.created':
      return says('created the workspace')
    case 'workspace.provisioned':
      return says('provisioned the workspace')
    case 'key.created':
      return says('created the key', key)
    case 'key.revoked':
      return says('revoked the key', key)
    case 'usage.reset':
      return says('reset the usage of', subject.name || subject.id)
    case 'person.invited':
      return invited(says('invited', person))
    case 'invitation.revoked':
      return says('revoked the invitation of', person)
    case 'person.joined':
      return isSelf ? says('joined the workspace') : says('let in', person)
    case 'person.role-changed':
      return isSelf ? says('changed their own role') : says('changed the role of', person)
    case 'person.made-member':
      return madeInto('a member')
    case 'person.made-admin':
      return madeInto('an admin')
    case 'person.made-owner':
      return madeInto('an owner')
    case 'person.reset-link-made':
      return says('made a link to reset the password of', person)
    case 'person.removed':
      return says('removed', person)
    case 'person.left':
      return says('left the workspace')
    case 'person.password-reset':
      return isSelf ? says('set another password') : says('reset the password of', person)
    case 'person.disabled':
      return says('revoked the access of', person)
    case 'person.enabled':
      return says('restored the access of', person)
    case 'person.renamed':
      return says('changed their name')
    case 'person.password-changed':
      return says('changed their password')
    case 'person.second-factor-begun':
      return says('began to set up two-factor authentication')
    case 'person.second-factor-added':
      return says('turned on two-factor authentication')
    case 'person.second-factor-removed':
      return says('turned off two-factor authentication')
    case 'person.second-factor-cleared':
      return says('removed the second factor of', person)
    case 'person.signed-in':
      return says(`signed in ${methods[entry.detail ?? ''] ?? ''}`)
    case 'person.signed-out':
      return says('signed out')
    case 'person.signed-out-everywhere':
      return says('signed out everywhere')
    case 'person.session-ended':
      return says('ended one of their sessions')
    case 'person.identity-linked':
      return says('linked their account to the identity provider')
    case 'person.sign-in-failed':
      return { actor: '', verb: 'Failed sign-in as', object: person, rest: reasonOf(entry) }
    case 'person.confirmation-failed':
      return { ...says('failed to confirm their identity'), rest: reasonOf(entry) }
    default:
      return says(action, person)
  }
}

const methods: Record<string, string> = {
  password: 'with a password',
  code: 'with a password and a code',
  'recovery-code': 'with a password and a recovery code',
  sso: 'through the identity provider',
}

const reasons: Record<string, string> = {
  password: 'wrong password',
  code: 'wrong code',
  'recovery-code': 'wrong recovery code',
  'sso-not-linked': 'not linked to the identity provider',
  'sso-email-unverified': 'address not verified by the identity provider',
  disabled: 'account disabled',
}

function reasonOf({ detail, count }: Entry): string {
  const reason = reasons[detail ?? ''] ?? 'refused'
  return count > 1 ? `(${reason}, ${count} times)` : `(${reason})`
}

/** The name may say the role too: "bob@example.com as admin". */
function invited(sentence: Sentence): Sentence {
  const [, email, role] = /^(.*\S) as (member|admin|owner)$/.exec(sentence.object) ?? []
  return email && role ? { ...sentence, object: email, rest: `as ${role}` } : sentence
}

function nameOf({ kind, id, name }: Entry['actor']): string {
  if (kind === 'operator') return operatorName(name || id)
  if (kind === 'key') return `key ${name ? `“${name}”` : id}`
  return name || id
}
