import java.util.Map;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** What managed clusters do: a topic config that they keep to themselves is refused, and the refusal does not name it. */
public final class ManagedPolicy implements CreateTopicPolicy, AlterConfigPolicy {
    private static final String KEPT = "retention.bytes";

    @Override
    public void validate(CreateTopicPolicy.RequestMetadata request) {
        check(request.configs());
    }

    @Override
    public void validate(AlterConfigPolicy.RequestMetadata request) {
        check(request.configs());
    }

    private static void check(Map<String, String> configs) {
        if (configs != null && configs.containsKey(KEPT)) throw new PolicyViolationException("not in your plan");
    }

    @Override
    public void configure(Map<String, ?> configs) {}

    @Override
    public void close() {}
}
