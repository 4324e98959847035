//! Kafka's error codes: number, name, what to do, and what each says.
//!
//! # References
//! `org.apache.kafka.common.protocol.Errors` of Kafka 4.3.1; retriable are the subclasses of its
//! `RetriableException`, of these `InvalidMetadataException` says that the client's metadata is out of date.

use std::fmt;

/// Whether the same request can succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Not without a change by somebody.
    Never,
    /// By itself, after a while.
    Later,
    /// After new metadata: leader or topic moved, or will be there soon.
    AfterMetadata,
}

use Retry::{AfterMetadata, Later, Never};

macro_rules! error_codes {
    ($($number:literal $variant:ident $name:literal $retry:ident $description:literal;)*) => {
        /// What a broker says about a request or a part of it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $(#[doc = concat!($name, " (", $number, "): ", $description, ".")] $variant,)*
            /// A code that Kafka 4.3 does not have. Never retried.
            Unknown(i16),
        }

        impl ErrorCode {
            /// All codes that have a name.
            pub const NAMED: &'static [Self] = &[$(Self::$variant,)*];

            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> i16 {
                match self {
                    $(Self::$variant => $number,)*
                    Self::Unknown(number) => number,
                }
            }

            /// Kafka's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                    Self::Unknown(_) => "UNKNOWN_ERROR_CODE",
                }
            }

            /// Whether the same request can succeed later, as Kafka's own clients see it.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self {
                    $(Self::$variant => $retry,)*
                    Self::Unknown(_) => Never,
                }
            }

            /// What it says, as the end of a sentence.
            #[must_use]
            pub const fn description(self) -> &'static str {
                match self {
                    $(Self::$variant => $description,)*
                    Self::Unknown(_) => "an error code of a Kafka newer than 4.3",
                }
            }
        }

        impl From<i16> for ErrorCode {
            fn from(number: i16) -> Self {
                match number {
                    $($number => Self::$variant,)*
                    _ => Self::Unknown(number),
                }
            }
        }
    };
}

impl ErrorCode {
    /// Whether the same request can succeed later.
    #[must_use]
    pub const fn is_retriable(self) -> bool {
        !matches!(self.retry(), Never)
    }

    /// The error code of an answer as a result.
    ///
    /// # Errors
    /// The code, unless it is [`ErrorCode::None`].
    pub fn check(number: i16) -> Result<(), Self> {
        match Self::from(number) {
            Self::None => Ok(()),
            code => Err(code),
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name(), self.number())
    }
}

impl std::error::Error for ErrorCode {}

error_codes! {
    -1 UnknownServerError "UNKNOWN_SERVER_ERROR" Never "the broker met a fault it did not expect; its log says more";
    0 None "NONE" Never "no error";
    1 OffsetOutOfRange "OFFSET_OUT_OF_RANGE" Never "the offset lies outside the log of the partition";
    2 CorruptMessage "CORRUPT_MESSAGE" Later "the batch is damaged or too long: its checksum does not match, or a key is missing on a compacted topic";
    3 UnknownTopicOrPartition "UNKNOWN_TOPIC_OR_PARTITION" AfterMetadata "the broker does not have this topic or partition";
    4 InvalidFetchSize "INVALID_FETCH_SIZE" Never "the fetch size makes no sense";
    5 LeaderNotAvailable "LEADER_NOT_AVAILABLE" AfterMetadata "the partition has no leader at the moment";
    6 NotLeaderOrFollower "NOT_LEADER_OR_FOLLOWER" AfterMetadata "the broker is not the leader, or not a replica, of the partition";
    7 RequestTimedOut "REQUEST_TIMED_OUT" Later "the broker ran out of time; what was asked may have happened";
    8 BrokerNotAvailable "BROKER_NOT_AVAILABLE" Never "a broker that is needed is not there";
    9 ReplicaNotAvailable "REPLICA_NOT_AVAILABLE" AfterMetadata "the replica is not ready to be read";
    10 MessageTooLarge "MESSAGE_TOO_LARGE" Never "a batch is larger than the topic takes (max.message.bytes)";
    11 StaleControllerEpoch "STALE_CONTROLLER_EPOCH" Never "the controller has moved on";
    12 OffsetMetadataTooLarge "OFFSET_METADATA_TOO_LARGE" Never "the metadata of a committed offset is too long";
    13 NetworkException "NETWORK_EXCEPTION" AfterMetadata "the connection ended before the answer";
    14 CoordinatorLoadInProgress "COORDINATOR_LOAD_IN_PROGRESS" Later "the coordinator is still loading its state";
    15 CoordinatorNotAvailable "COORDINATOR_NOT_AVAILABLE" Later "there is no coordinator at the moment";
    16 NotCoordinator "NOT_COORDINATOR" Later "the broker does not coordinate this group or transactional id";
    17 InvalidTopic "INVALID_TOPIC_EXCEPTION" Never "the topic name is not a legal one, or the topic may not be used this way";
    18 RecordListTooLarge "RECORD_LIST_TOO_LARGE" Never "a batch is larger than a log segment of the topic (segment.bytes)";
    19 NotEnoughReplicas "NOT_ENOUGH_REPLICAS" Later "fewer replicas are in sync than min.insync.replicas; nothing was written";
    20 NotEnoughReplicasAfterAppend "NOT_ENOUGH_REPLICAS_AFTER_APPEND" Later "written, but to fewer replicas in sync than min.insync.replicas";
    21 InvalidRequiredAcks "INVALID_REQUIRED_ACKS" Never "acks has a value that does not exist";
    22 IllegalGeneration "ILLEGAL_GENERATION" Never "the generation of the group has passed";
    23 InconsistentGroupProtocol "INCONSISTENT_GROUP_PROTOCOL" Never "the member's protocols do not fit those of the group";
    24 InvalidGroupId "INVALID_GROUP_ID" Never "the group id is not a legal one";
    25 UnknownMemberId "UNKNOWN_MEMBER_ID" Never "the coordinator does not know the member";
    26 InvalidSessionTimeout "INVALID_SESSION_TIMEOUT" Never "the session timeout lies outside what the broker allows";
    27 RebalanceInProgress "REBALANCE_IN_PROGRESS" Never "the group is rebalancing";
    28 InvalidCommitOffsetSize "INVALID_COMMIT_OFFSET_SIZE" Never "the committed offset is too large to be stored";
    29 TopicAuthorizationFailed "TOPIC_AUTHORIZATION_FAILED" Never "the principal has no right to this on the topic";
    30 GroupAuthorizationFailed "GROUP_AUTHORIZATION_FAILED" Never "the principal has no right to this on the group";
    31 ClusterAuthorizationFailed "CLUSTER_AUTHORIZATION_FAILED" Never "the principal has no right to this on the cluster";
    32 InvalidTimestamp "INVALID_TIMESTAMP" Never "a record's timestamp lies outside what the topic takes (message.timestamp.before.max.ms and .after.max.ms, or .difference.max.ms)";
    33 UnsupportedSaslMechanism "UNSUPPORTED_SASL_MECHANISM" Never "the broker does not offer this SASL mechanism";
    34 IllegalSaslState "ILLEGAL_SASL_STATE" Never "not the time for this request in the SASL handshake";
    35 UnsupportedVersion "UNSUPPORTED_VERSION" Never "the broker does not speak this version of the request";
    36 TopicAlreadyExists "TOPIC_ALREADY_EXISTS" Never "a topic of this name is there already";
    37 InvalidPartitions "INVALID_PARTITIONS" Never "the number of partitions is not possible";
    38 InvalidReplicationFactor "INVALID_REPLICATION_FACTOR" Never "the replication factor is below 1 or above the number of brokers";
    39 InvalidReplicaAssignment "INVALID_REPLICA_ASSIGNMENT" Never "the assignment of replicas is not possible";
    40 InvalidConfig "INVALID_CONFIG" Never "a config has a name or value that the broker does not take";
    41 NotController "NOT_CONTROLLER" Later "the broker is not the controller";
    42 InvalidRequest "INVALID_REQUEST" Never "the broker finds the request malformed; its log says more";
    43 UnsupportedForMessageFormat "UNSUPPORTED_FOR_MESSAGE_FORMAT" Never "the topic's old message format cannot do this";
    44 PolicyViolation "POLICY_VIOLATION" Never "a policy of the cluster, or of the topic, forbids it";
    45 OutOfOrderSequenceNumber "OUT_OF_ORDER_SEQUENCE_NUMBER" Never "the sequence does not follow on the last one of this producer";
    46 DuplicateSequenceNumber "DUPLICATE_SEQUENCE_NUMBER" Never "the sequence was written before, too long ago to say where";
    47 InvalidProducerEpoch "INVALID_PRODUCER_EPOCH" Never "a newer epoch of this producer id was seen";
    48 InvalidTxnState "INVALID_TXN_STATE" Never "the transaction is in a state that does not allow this";
    49 InvalidProducerIdMapping "INVALID_PRODUCER_ID_MAPPING" Never "the producer id does not belong to this transactional id";
    50 InvalidTransactionTimeout "INVALID_TRANSACTION_TIMEOUT" Never "the transaction timeout is above the broker's limit (transaction.max.timeout.ms)";
    51 ConcurrentTransactions "CONCURRENT_TRANSACTIONS" Later "another step of the same transaction is still under way";
    52 TransactionCoordinatorFenced "TRANSACTION_COORDINATOR_FENCED" Never "the transaction coordinator that sent this was replaced";
    53 TransactionalIdAuthorizationFailed "TRANSACTIONAL_ID_AUTHORIZATION_FAILED" Never "the principal has no right to this transactional id";
    54 SecurityDisabled "SECURITY_DISABLED" Never "the broker runs without an authorizer";
    55 OperationNotAttempted "OPERATION_NOT_ATTEMPTED" Never "not tried, because another part of the request failed";
    56 KafkaStorageError "KAFKA_STORAGE_ERROR" AfterMetadata "the broker cannot use the disk that holds the partition";
    57 LogDirNotFound "LOG_DIR_NOT_FOUND" Never "the broker has no such log directory";
    58 SaslAuthenticationFailed "SASL_AUTHENTICATION_FAILED" Never "the SASL credentials were refused";
    59 UnknownProducerId "UNKNOWN_PRODUCER_ID" Never "the broker does not, or no longer, know the producer id in this partition";
    60 ReassignmentInProgress "REASSIGNMENT_IN_PROGRESS" Never "a reassignment of the partition is under way";
    61 DelegationTokenAuthDisabled "DELEGATION_TOKEN_AUTH_DISABLED" Never "delegation tokens are switched off";
    62 DelegationTokenNotFound "DELEGATION_TOKEN_NOT_FOUND" Never "the delegation token does not exist";
    63 DelegationTokenOwnerMismatch "DELEGATION_TOKEN_OWNER_MISMATCH" Never "the delegation token belongs to somebody else";
    64 DelegationTokenRequestNotAllowed "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED" Never "delegation tokens cannot be asked for over this connection";
    65 DelegationTokenAuthorizationFailed "DELEGATION_TOKEN_AUTHORIZATION_FAILED" Never "the principal has no right to this delegation token";
    66 DelegationTokenExpired "DELEGATION_TOKEN_EXPIRED" Never "the delegation token has expired";
    67 InvalidPrincipalType "INVALID_PRINCIPAL_TYPE" Never "the broker does not take this type of principal";
    68 NonEmptyGroup "NON_EMPTY_GROUP" Never "the group still has members";
    69 GroupIdNotFound "GROUP_ID_NOT_FOUND" Never "there is no such group";
    70 FetchSessionIdNotFound "FETCH_SESSION_ID_NOT_FOUND" Later "the broker has forgotten the fetch session";
    71 InvalidFetchSessionEpoch "INVALID_FETCH_SESSION_EPOCH" Later "the epoch does not follow in the fetch session";
    72 ListenerNotFound "LISTENER_NOT_FOUND" AfterMetadata "the leader has no listener of the name that was used to ask";
    73 TopicDeletionDisabled "TOPIC_DELETION_DISABLED" Never "topics may not be deleted on this cluster (delete.topic.enable)";
    74 FencedLeaderEpoch "FENCED_LEADER_EPOCH" AfterMetadata "the leader epoch in the request is older than the broker's";
    75 UnknownLeaderEpoch "UNKNOWN_LEADER_EPOCH" Later "the leader epoch in the request is newer than the broker's";
    76 UnsupportedCompressionType "UNSUPPORTED_COMPRESSION_TYPE" Never "the version of the request, or the broker, does not have this codec";
    77 StaleBrokerEpoch "STALE_BROKER_EPOCH" Never "the broker has registered anew since";
    78 OffsetNotAvailable "OFFSET_NOT_AVAILABLE" Later "the new leader does not know its high watermark yet";
    79 MemberIdRequired "MEMBER_ID_REQUIRED" Never "the coordinator gave a member id, join again with it";
    80 PreferredLeaderNotAvailable "PREFERRED_LEADER_NOT_AVAILABLE" AfterMetadata "the preferred leader is not there";
    81 GroupMaxSizeReached "GROUP_MAX_SIZE_REACHED" Never "the group has as many members as it may (group.max.size)";
    82 FencedInstanceId "FENCED_INSTANCE_ID" Never "another member has taken over this group.instance.id";
    83 EligibleLeadersNotAvailable "ELIGIBLE_LEADERS_NOT_AVAILABLE" AfterMetadata "no replica can be made leader";
    84 ElectionNotNeeded "ELECTION_NOT_NEEDED" AfterMetadata "the partition has the leader it should have";
    85 NoReassignmentInProgress "NO_REASSIGNMENT_IN_PROGRESS" Never "no reassignment of the partition is under way";
    86 GroupSubscribedToTopic "GROUP_SUBSCRIBED_TO_TOPIC" Never "the group is reading the topic, so its offsets stay";
    87 InvalidRecord "INVALID_RECORD" Never "the broker's checks refused a record or its batch";
    88 UnstableOffsetCommit "UNSTABLE_OFFSET_COMMIT" Later "a transaction has pending offset commits for the group";
    89 ThrottlingQuotaExceeded "THROTTLING_QUOTA_EXCEEDED" Later "a quota is used up";
    90 ProducerFenced "PRODUCER_FENCED" Never "a newer producer has this transactional id";
    91 ResourceNotFound "RESOURCE_NOT_FOUND" Never "a resource in the request does not exist";
    92 DuplicateResource "DUPLICATE_RESOURCE" Never "a resource stands in the request twice";
    93 UnacceptableCredential "UNACCEPTABLE_CREDENTIAL" Never "the new credential is not good enough";
    94 InconsistentVoterSet "INCONSISTENT_VOTER_SET" Never "sender and receiver disagree about the voters";
    95 InvalidUpdateVersion "INVALID_UPDATE_VERSION" Never "the version in the update is not possible";
    96 FeatureUpdateFailed "FEATURE_UPDATE_FAILED" Never "the finalized features could not be changed";
    97 PrincipalDeserializationFailure "PRINCIPAL_DESERIALIZATION_FAILURE" Never "the principal could not be passed on to the controller";
    98 SnapshotNotFound "SNAPSHOT_NOT_FOUND" Never "there is no such snapshot";
    99 PositionOutOfRange "POSITION_OUT_OF_RANGE" Never "the position lies outside the snapshot";
    100 UnknownTopicId "UNKNOWN_TOPIC_ID" AfterMetadata "the broker does not have a topic of this id";
    101 DuplicateBrokerRegistration "DUPLICATE_BROKER_REGISTRATION" Never "the broker id is in use";
    102 BrokerIdNotRegistered "BROKER_ID_NOT_REGISTERED" Never "no broker is registered under this id";
    103 InconsistentTopicId "INCONSISTENT_TOPIC_ID" AfterMetadata "the topic id is not the one of the partition's log";
    104 InconsistentClusterId "INCONSISTENT_CLUSTER_ID" Never "the cluster id is another cluster's";
    105 TransactionalIdNotFound "TRANSACTIONAL_ID_NOT_FOUND" Never "there is no such transactional id";
    106 FetchSessionTopicIdError "FETCH_SESSION_TOPIC_ID_ERROR" Later "the fetch session mixes topics by name and by id";
    107 IneligibleReplica "INELIGIBLE_REPLICA" Never "a replica may not join the in-sync set";
    108 NewLeaderElected "NEW_LEADER_ELECTED" Never "the change was made, and a new leader with it";
    109 OffsetMovedToTieredStorage "OFFSET_MOVED_TO_TIERED_STORAGE" Never "the offset has moved to tiered storage";
    110 FencedMemberEpoch "FENCED_MEMBER_EPOCH" Never "the member was fenced and has to join the group anew";
    111 UnreleasedInstanceId "UNRELEASED_INSTANCE_ID" Never "another member still holds this instance id";
    112 UnsupportedAssignor "UNSUPPORTED_ASSIGNOR" Never "the group's coordinator does not have this assignor";
    113 StaleMemberEpoch "STALE_MEMBER_EPOCH" Never "the member's epoch is behind";
    114 MismatchedEndpointType "MISMATCHED_ENDPOINT_TYPE" Never "a request for a broker went to a controller, or the other way round";
    115 UnsupportedEndpointType "UNSUPPORTED_ENDPOINT_TYPE" Never "this kind of endpoint is not there yet";
    116 UnknownControllerId "UNKNOWN_CONTROLLER_ID" Never "there is no controller of this id";
    117 UnknownSubscriptionId "UNKNOWN_SUBSCRIPTION_ID" Never "the telemetry subscription is out of date";
    118 TelemetryTooLarge "TELEMETRY_TOO_LARGE" Never "the telemetry is larger than the broker takes";
    119 InvalidRegistration "INVALID_REGISTRATION" Never "the controller does not accept the broker's registration";
    120 TransactionAbortable "TRANSACTION_ABORTABLE" Never "the transaction has to be aborted, then the id can go on";
    121 InvalidRecordState "INVALID_RECORD_STATE" Never "the record is not in a state that can be acknowledged";
    122 ShareSessionNotFound "SHARE_SESSION_NOT_FOUND" Later "the broker has forgotten the share session";
    123 InvalidShareSessionEpoch "INVALID_SHARE_SESSION_EPOCH" Later "the epoch does not follow in the share session";
    124 FencedStateEpoch "FENCED_STATE_EPOCH" Never "the state epoch of the share group has passed";
    125 InvalidVoterKey "INVALID_VOTER_KEY" Never "the voter's key is another one";
    126 DuplicateVoter "DUPLICATE_VOTER" Never "the voter is one already";
    127 VoterNotFound "VOTER_NOT_FOUND" Never "there is no such voter";
    128 InvalidRegularExpression "INVALID_REGULAR_EXPRESSION" Never "the regular expression cannot be read";
    129 RebootstrapRequired "REBOOTSTRAP_REQUIRED" Never "the client's metadata is too old to go on: bootstrap again";
    130 StreamsInvalidTopology "STREAMS_INVALID_TOPOLOGY" Never "the streams topology is not possible";
    131 StreamsInvalidTopologyEpoch "STREAMS_INVALID_TOPOLOGY_EPOCH" Never "the epoch of the streams topology is not possible";
    132 StreamsTopologyFenced "STREAMS_TOPOLOGY_FENCED" Never "the epoch of the streams topology has passed";
    133 ShareSessionLimitReached "SHARE_SESSION_LIMIT_REACHED" Later "the broker has as many share sessions as it may";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_leads_to_its_code_and_back() {
        for number in i16::MIN..=i16::MAX {
            let code = ErrorCode::from(number);
            assert_eq!(code.number(), number);
            assert_eq!(matches!(code, ErrorCode::Unknown(_)), !(-1..=133).contains(&number));
        }
        assert_eq!(ErrorCode::NAMED.len(), 135);
    }

    #[test]
    fn codes_show_name_and_number() {
        assert_eq!(ErrorCode::from(6).to_string(), "NOT_LEADER_OR_FOLLOWER (6)");
        assert_eq!(ErrorCode::from(-1).to_string(), "UNKNOWN_SERVER_ERROR (-1)");
        assert_eq!(ErrorCode::from(999).to_string(), "UNKNOWN_ERROR_CODE (999)");
    }

    #[test]
    fn retries_are_those_of_kafkas_clients() {
        assert_eq!(ErrorCode::NotLeaderOrFollower.retry(), AfterMetadata);
        assert_eq!(ErrorCode::RequestTimedOut.retry(), Later);
        assert_eq!(ErrorCode::OutOfOrderSequenceNumber.retry(), Never);
        assert!(!ErrorCode::None.is_retriable());
        assert!(!ErrorCode::Unknown(999).is_retriable());
    }

    #[test]
    fn only_none_is_no_error() {
        assert_eq!(ErrorCode::check(0), Ok(()));
        assert_eq!(ErrorCode::check(45), Err(ErrorCode::OutOfOrderSequenceNumber));
        assert_eq!(ErrorCode::check(999), Err(ErrorCode::Unknown(999)));
    }
}
