// Settings of the signed-in user's account.
import { Page } from '../components/page.tsx'
import { useSession } from '../session.tsx'
import { Name } from './name.tsx'
import { Password } from './password.tsx'
import { Sessions } from './sessions.tsx'
import { TwoFactor } from './two-factor.tsx'

export function AccountPage() {
  const { user } = useSession()
  return (
    <Page title="Account" description={`Signed in as ${user.email}`}>
      <Name />
      {user.hasPassword && <Password />}
      {user.hasPassword && <TwoFactor />}
      <Sessions />
    </Page>
  )
}
