// Entries of the audit log as sentences.
import type { Answer } from '../api.ts'
import { operatorName } from '../figures.ts'

export type Entry = Answer<'audit.list'>['entries'][number]

/** Who, did what, to whom or what, and what more; the last two may be empty. */
export interface Sentence {
  actor: string
  verb: string
  object: string
  rest?: string
}

export function sentenceOf(entry: Entry): Sentence {
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
    case 'person.second-factor-cleared':
      return says('removed the second factor of', person)
    default:
      return says(action, person)
  }
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
