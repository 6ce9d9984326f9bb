"""The configuration of the login pods' sshd, and the PAM service that it uses.

Users log in with keys. If the spec allows passwords, PAM checks them against the jail's shadow file and the directory; root cannot use one.
"""

from soperator.render.parts import sssd
from soperator.render.parts.model import Cluster
from soperator.render.parts.paths import BUNDLE

_CONFIG = """\
# sshd of the login pods. It runs inside the jail; programs and keys are bound there (docs/explain/pods.md).
Port 22
HostKey /run/soperator/hostkeys/ssh_host_ed25519_key
HostCertificate /run/soperator/hostkeys/ssh_host_ed25519_key-cert.pub
SshdSessionPath /opt/soperator/libexec/sshd-session
SshdAuthPath /opt/soperator/libexec/sshd-auth
Subsystem sftp /opt/soperator/libexec/sftp-server
PidFile none
LogLevel INFO
# Accounts that useradd made have no password; without PAM sshd would call them locked.
UsePAM yes
PAMServiceName soperator-sshd
PasswordAuthentication {passwords}
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
AuthorizedKeysFile .ssh/authorized_keys
PrintMotd no
UseDNS no
X11Forwarding yes
AllowAgentForwarding yes
AllowTcpForwarding yes
AcceptEnv LANG LC_*
SetEnv PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# Behind a NodePort all clients may come from one address: no penalty may fall on all of them. A single address that holds connections without
# logging in takes a fifth of the places.
PerSourcePenalties no
MaxStartups 100:30:500
PerSourceMaxStartups 100
MaxSessions 100
LoginGraceTime 60
ClientAliveInterval 60
ClientAliveCountMax 10
# Kubernetes makes the folder of a ConfigMap writable by all, so sshd would refuse to read a file in it by itself.
# What root of the jail writes into root's home lets nobody in: the list of the spec alone does.
Match User root
    AuthorizedKeysFile none
    AuthorizedKeysCommand /opt/soperator/libexec/cat /run/soperator/ssh/authorized_keys_root
    AuthorizedKeysCommandUser nobody
"""

_MODULES = f"{BUNDLE}/lib/security"
#: sshd knows root by the name, and reads the keys of any other account from its home. One with uid 0 under another name is refused.
_ONE_ROOT = (
    "account [success=1 default=ignore] pam_succeed_if.so quiet uid != 0",
    "account requisite pam_succeed_if.so quiet user = root",
)


def config(cluster: Cluster) -> str:
    """Return the text of sshd_config."""
    return _CONFIG.format(passwords="yes" if cluster.spec.login.password_authentication else "no")


def pam(cluster: Cluster) -> str:
    """Return the text of the PAM service, one line for each module; all modules are in the bundle."""
    used = sssd.is_used(cluster)
    lines = [
        *_auth(cluster.spec.login.password_authentication, used),
        *_account(used),
        "password required pam_deny.so",
        *_session(used),
    ]
    head = (
        "# PAM service of the login pods' sshd. A login by key asks account and session, one by password auth as well."
    )
    return "".join(f"{line}\n" for line in [head, *(line.replace(" pam_", f" {_MODULES}/pam_") for line in lines)])


def _auth(passwords: bool, used: bool) -> list[str]:
    if not passwords:
        return ["auth required pam_deny.so"]
    more = ["auth sufficient pam_sss.so use_first_pass"] if used else []
    return ["auth sufficient pam_unix.so", *more, "auth required pam_deny.so"]


def _account(used: bool) -> list[str]:
    """Return the lines of PAM's account phase: an expired account is refused, and the directory may refuse its own accounts, without effect while
    it does not answer.
    """
    more = ["account [default=bad success=ok user_unknown=ignore authinfo_unavail=ignore] pam_sss.so"] if used else []
    return [*_ONE_ROOT, "account required pam_nologin.so", "account required pam_unix.so", *more]


def _session(used: bool) -> list[str]:
    """Return the lines of PAM's session phase, which create a home at the first session of a user of the directory."""
    return [
        "session required pam_permit.so",
        *(["session optional pam_mkhomedir.so umask=0077"] if used else []),
        "session optional pam_umask.so",
        "session optional pam_keyinit.so force revoke",
        "session optional pam_limits.so",
        "session optional pam_env.so readenv=1",
    ]
