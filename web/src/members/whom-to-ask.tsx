// Names of members who can do what the user may not.
import { useQuery } from '@tanstack/react-query'
import { membersQuery } from '../queries.ts'
import { type Role, useWorkspace } from '../session.tsx'

const LISTED_MAX = 5

export function WhomToAsk({ roles }: { roles: readonly Role[] }) {
  const { slug } = useWorkspace()
  const { data } = useQuery(membersQuery(slug))
  const found = data?.members.filter(({ role }) => roles.includes(role)).slice(0, LISTED_MAX) ?? []
  if (found.length === 0) return null
  return <> Ask {found.map(({ name, email }) => `${name} (${email})`).join(' or ')}.</>
}
