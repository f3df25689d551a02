// One's own account.
import { Page } from '../components/page.tsx'
import { useSession } from '../session.tsx'
import { Name } from './name.tsx'
import { Password } from './password.tsx'
import { Sessions } from './sessions.tsx'
import { TwoFactor } from './two-factor.tsx'

export function AccountPage() {
  const { person } = useSession()
  return (
    <Page title="Account" lead={`Signed in as ${person.email}`}>
      <Name />
      {person.hasPassword && <Password />}
      {person.hasPassword && <TwoFactor />}
      <Sessions />
    </Page>
  )
}
