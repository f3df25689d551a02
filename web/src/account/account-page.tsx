// One's own account.
import { Page } from '../parts/page.tsx'
import { useSession } from '../session.tsx'
import { Name } from './name.tsx'
import { Password } from './password.tsx'
import { SecondFactor } from './second-factor.tsx'
import { Sessions } from './sessions.tsx'

export function AccountPage() {
  const { person } = useSession()
  return (
    <Page title="Account" lead={`Signed in as ${person.email}`}>
      <Name />
      {person.hasPassword && <Password />}
      {person.hasPassword && <SecondFactor />}
      <Sessions />
    </Page>
  )
}
